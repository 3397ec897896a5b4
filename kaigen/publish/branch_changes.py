"""Computes what a rendered tree changes in a folder of a branch, and the message of the commit. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kaigen import __version__
from kaigen.core.text import shown_name
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.output.index import INDEX_NAME, check_paths, collisions, fold, format_index, parents
from kaigen.publish.results import AppChanges, TreeResult
from kaigen.publish.source import Source

FILE_MODES = frozenset({"100644", "100755"})


class Entry(Struct, frozen=True):
    """An entry of a Git tree: its mode and the hash of its object."""

    mode: str
    oid: str


class PublishedFolder(Struct, frozen=True):
    """A folder of the branch before the publication. Paths are relative to the folder.

    Attributes:
        path: the folder, for messages; empty for the top of the branch.
        entries: everything below it.
        owned: the paths that its index lists.
        index: the content of its index; empty when it has none.
    """

    path: str
    entries: Mapping[str, Entry]
    owned: frozenset[str]
    index: bytes

    def has(self, path: str, oid: str) -> bool:
        """Return whether a path is a regular file with this content."""
        entry = self.entries.get(path)
        return entry is not None and entry.mode in FILE_MODES and entry.oid == oid


class FolderChanges(Struct, frozen=True):
    """What a publication changes in one folder. Paths are relative to the folder.

    Attributes:
        writes: new and changed files, including the index.
        removes: files to remove.
        added: the paths of `writes` that do not exist yet.
    """

    writes: Mapping[str, bytes]
    removes: frozenset[str]
    added: frozenset[str]

    def apps(self, before: frozenset[str], after: frozenset[str]) -> AppChanges:
        """Return the apps that change.

        Args:
            before: the files that kaigen owned.
            after: the files that it owns now.
        """
        touched = {app_of(path) for path in {*self.writes, *self.removes}} - {""}
        old, new = ({app_of(path) for path in paths} for paths in (before, after))
        return AppChanges(
            tuple(sorted(touched - old)), tuple(sorted(touched & old & new)), tuple(sorted(touched & old - new))
        )

    def file_counts(self) -> tuple[int, int, int]:
        """Return how many files are added, changed and removed, without the index."""
        index = {INDEX_NAME}
        changed = self.writes.keys() - self.added - index
        return len(self.added - index), len(changed), len(self.removes - index)


def app_of(path: str) -> str:
    """Return `NAMESPACE/NAME` of the app that a file belongs to; empty for a file of no app."""
    parts = path.split("/")
    return f"{parts[0]}/{parts[1]}" if len(parts) > 2 else ""


def folder_changes(folder: PublishedFolder, files: Mapping[str, bytes], oids: Mapping[str, str]) -> FolderChanges:
    """Return what changes when a rendered tree replaces the tree that was published before.

    Args:
        folder: the folder of the branch as it is.
        files: the rendered tree.
        oids: the Git object hash of each rendered file.

    Raises:
        InputError: KG0601, a file that kaigen did not write is in the way; KG0603, two paths conflict.
    """
    check_paths(files)
    diagnostics = Diagnostics()
    for diagnostic in (*_conflicts(folder, files), *_files_in_the_way(folder, files, oids)):
        diagnostics.add(diagnostic)
    diagnostics.raise_errors()
    writes = {path: content for path, content in files.items() if not folder.has(path, oids[path])}
    index = format_index(files)
    if files and index != folder.index:
        writes[INDEX_NAME] = index
    removes = _removed(folder, files)
    added = frozenset(path for path in writes if path not in folder.entries)
    return FolderChanges(writes, removes, added)


def _conflicts(folder: PublishedFolder, files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    for first, second in collisions(files):
        message = f"`{first}` and `{second}` conflict on some file systems"
        yield Diagnostic("KG0603", message, _mark(folder, second), "rename one of the apps")


def _files_in_the_way(
    folder: PublishedFolder, files: Mapping[str, bytes], oids: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Report each output path that is taken by a file, or a folder, that kaigen did not write."""
    foreign = {path for path in folder.entries if path not in folder.owned and path != INDEX_NAME}
    foreign_files = {fold(path): path for path in foreign}
    foreign_folders = {fold(parent): parent for path in foreign for parent in parents(path)}
    for path in files:
        if path in foreign and folder.has(path, oids[path]):
            continue
        blocker = foreign_files.get(fold(path)) or foreign_folders.get(fold(path))
        if blocker is None:
            blocker = next((foreign_files[fold(each)] for each in parents(path) if fold(each) in foreign_files), None)
        if blocker is not None:
            yield Diagnostic(
                "KG0601",
                "a file that kaigen did not write is in the way",
                _mark(folder, blocker),
                "move the file, or publish to another --path",
            )


def _removed(folder: PublishedFolder, files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the files of the last publication that are no longer rendered.

    A link or submodule that somebody put in place of such a file stays.
    """
    removes = {
        path
        for path in folder.owned
        if path not in files and path in folder.entries and folder.entries[path].mode in FILE_MODES
    }
    if not files and folder.index:
        removes.add(INDEX_NAME)
    return frozenset(removes)


def _mark(folder: PublishedFolder, path: str) -> Mark:
    return Mark(f"{folder.path}/{path}" if folder.path else path)


SUBJECT_LENGTH = 72
MOST_APPS = 100
"""The most apps that the body lists per tree and kind of change."""

_TRAILER = re.compile(r"^[A-Za-z][A-Za-z-]*: \S")


def commit_message(source: Source, trees: Sequence[TreeResult], given: str = "") -> str:
    """Return the message of a commit.

    Args:
        source: what was rendered.
        trees: all trees, changed or not.
        given: subject and body to use instead of the generated ones.
    """
    touched = [tree for tree in trees if any(tree.files) or tree.apps.all]
    body = given.strip() or "\n\n".join([subject(touched), *(_body(tree) for tree in touched)])
    return f"{body}\n\n{trailers(source)}\n"


def subject(trees: Sequence[TreeResult]) -> str:
    """Return the first line: the environments, and as many apps as fit."""
    where = ", ".join(shown_name(tree.environment) for tree in trees if tree.environment)
    head = f"Render {where}: " if where and len(where) < 40 else f"Render {len(trees)} trees: " if where else "Render "
    apps = sorted({shown_name(app) for tree in trees for app in tree.apps.all})
    if not apps:
        return f"{head.rstrip(': ')} again" if where else "Render again"
    shown: list[str] = []
    for number, app in enumerate(apps):
        left = len(apps) - number - 1
        tail = f" and {left} more" if left else ""
        if shown and len(head + ", ".join([*shown, app]) + tail) > SUBJECT_LENGTH:
            break
        shown.append(app)
    hidden = len(apps) - len(shown)
    return head + ", ".join(shown) + (f" and {hidden} more" if hidden else "")


def _body(tree: TreeResult) -> str:
    path = shown_name(tree.path or ".")
    head = f"{shown_name(tree.environment)} ({path}):" if tree.environment else f"{path}:"
    lines = [head]
    for word, apps in (("added", tree.apps.added), ("changed", tree.apps.changed), ("removed", tree.apps.removed)):
        lines += [f"- {word} {shown_name(app)}" for app in apps[:MOST_APPS]]
        if len(apps) > MOST_APPS:
            lines.append(f"- {word} {len(apps) - MOST_APPS} more")
    if len(lines) == 1:
        lines.append("- files that belong to no app")
    return "\n".join(lines)


def trailers(source: Source) -> str:
    """Return the last paragraph, in the format of `git interpret-trailers`."""
    lines = [f"Source-Commit: {source.commit}"]
    if source.repository:
        lines.append(f"Source-Repository: {source.repository}")
    if source.folder:
        lines.append(f"Source-Folder: {shown_name(source.folder)}")
    if source.dirty:
        lines.append("Source-State: uncommitted changes")
    lines.append(f"Rendered-By: kaigen {__version__}")
    return "\n".join(lines)


def read_trailers(message: str) -> dict[str, str]:
    """Return the trailers of a message that kaigen wrote, even after a code host squashed or merged it."""
    found = {}
    for line in message.split("\n"):
        name, colon, value = line.strip().partition(": ")
        if colon and _TRAILER.match(line.strip()):
            found[name] = value.strip()
    return found
