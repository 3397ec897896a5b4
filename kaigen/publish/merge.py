"""What a rendered tree changes in a branch: kaigen's own files are replaced, those of others stay. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, Mark
from kaigen.output.index import INDEX_NAME, check_paths, collisions, fold, format_index, parents
from kaigen.publish.results import AppChanges

FILE_MODES = frozenset({"100644", "100755"})


@dataclass(frozen=True, slots=True)
class Entry:
    """What a branch holds at a path: Git's mode and the object's name."""

    mode: str
    oid: str


@dataclass(frozen=True, slots=True)
class Merge:
    """What one tree changes below its folder. Paths are relative to that folder.

    Attributes:
        writes: files that are new or hold something else, the index included.
        removes: files that go.
        added: of `writes`, those that were not there.
    """

    writes: Mapping[str, bytes]
    removes: frozenset[str]
    added: frozenset[str]

    def apps(self, before: frozenset[str], after: frozenset[str]) -> AppChanges:
        """The apps that differ.

        Args:
            before: the files that kaigen owned.
            after: those that it owns now.
        """
        touched = {app_of(path) for path in {*self.writes, *self.removes}} - {""}
        old, new = ({app_of(path) for path in paths} for paths in (before, after))
        return AppChanges(
            tuple(sorted(touched - old)),
            tuple(sorted(touched & old & new)),
            tuple(sorted(touched & old - new)),
        )

    def files(self) -> tuple[int, int, int]:
        """How many files are added, changed and removed, the index left out."""
        index = {INDEX_NAME}
        changed = self.writes.keys() - self.added - index
        return len(self.added - index), len(changed), len(self.removes - index)


def app_of(path: str) -> str:
    """`NAMESPACE/NAME` of the app that a file belongs to; empty for a file of none."""
    parts = path.split("/")
    return f"{parts[0]}/{parts[1]}" if len(parts) > 2 else ""


def merge_tree(
    there: Mapping[str, Entry],
    owned: frozenset[str],
    index: bytes,
    files: Mapping[str, bytes],
    oids: Mapping[str, str],
    shown: str,
) -> Merge:
    """Say what changes when a rendered tree takes the place of the one before.

    Args:
        there: everything below the folder in the branch.
        owned: the paths of the index in the branch.
        index: that index; empty when there is none.
        files: the rendered tree.
        oids: name of the Git object of each of its files.
        shown: the folder, for messages.

    Raises:
        InputError: KG0601 for a file of others in the way, KG0603 for paths that cannot stand side by side.
    """
    check_paths(files)
    found = Diagnostics()
    others = {path: entry for path, entry in there.items() if path not in owned and path != INDEX_NAME}
    folded = {fold(path): path for path in others}
    folders = {fold(parent): parent for path in others for parent in parents(path)}
    for first, second in collisions(files):
        message = f"`{first}` and `{second}` cannot stand side by side"
        found.add(Diagnostic("KG0603", message, _mark(shown, second), "rename one of the apps"))
    for path in files:
        same = others.get(path)
        if same is not None and same.mode in FILE_MODES and same.oid == oids[path]:
            continue
        taken = folded.get(fold(path)) or folders.get(fold(path))
        above = next((folded[fold(each)] for each in parents(path) if fold(each) in folded), None)
        if taken is None and above is None:
            continue
        hint = "move it to another place in the branch, or publish to another --path"
        found.add(
            Diagnostic(
                "KG0601", "a file that kaigen did not write is in the way", _mark(shown, taken or above), hint
            )
        )
    found.raise_errors()
    wanted = {**files, INDEX_NAME: format_index(files)} if files else {}
    writes = {
        path: content
        for path, content in files.items()
        if path not in there or there[path].mode not in FILE_MODES or there[path].oid != oids[path]
    }
    if files and wanted[INDEX_NAME] != index:
        writes[INDEX_NAME] = wanted[INDEX_NAME]
    gone = {path for path in owned if path in there and path not in files}
    # Should someone have put a link or a submodule in its place, it is theirs.
    removes = {path for path in gone if there[path].mode in FILE_MODES}
    if not files and index:
        removes.add(INDEX_NAME)
    added = frozenset(path for path in writes if path not in there)
    return Merge(writes, frozenset(removes), added)


def _mark(shown: str, path: str | None) -> Mark:
    return Mark(f"{shown}/{path}" if shown else path or "")
