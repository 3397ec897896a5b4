"""Writes output trees. `write_tree` changes only files of kaigen, and all of them at once.

A tree is a directory that may also have foreign files. Its index, `.kaigen-index`, lists the files that kaigen wrote;
no write changes any other file. A write is atomic, even if the process is killed: see `kaigen.output.staging`.

File modes are not part of a tree's content: new files get 0644 and new directories 0755 regardless of the umask. The
mode of an unchanged file stays, because Git checkouts set it by their own umask.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.output.changeset import Changeset, Scope, compute_changeset, index_after, read_file, read_index
from kaigen.output.contents import FileContent, Stamp, TreeState, data_of, digest_of, stamp_of
from kaigen.output.index import INDEX_NAME
from kaigen.output.lock import write_lock
from kaigen.output.root import OutputRoot, resolve_root
from kaigen.output.staging import Staging, recover
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    import difflib


LARGEST = 1 << 20
"""Bytes of a file whose lines are compared. What kaigen renders is smaller: an API server stores 1.5 MB at most."""


def unified_diff(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Compare two versions of a file.

    Args:
        path: the name of the file, printed as `a/path` and `b/path`.
        old: its bytes; None when it does not exist.
        new: the same for the new version.

    Yields:
        Lines without their ends; none when both versions are equal. One line when a version is too large to review.
    """
    names = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}")
    if max(len(old or b""), len(new or b"")) > LARGEST:
        if old != new:
            yield f"Files {names[0]} ({len(old or b'')} bytes) and {names[1]} ({len(new or b'')} bytes) differ"
        return
    before, after = _lines(old or b""), _lines(new or b"")
    if before is None or after is None:
        if old != new:
            yield f"Binary files {names[0]} and {names[1]} differ"
        return
    if not before and not after and (old is None) != (new is None):
        yield f"--- {names[0]}"
        yield f"+++ {names[1]}"
    for line in difflib.unified_diff(before, after, *names, lineterm=""):
        text, missing_end, _ = line.partition(_NO_END)
        yield text
        if missing_end:
            yield "\\ No newline at end of file"


# A text has no zero byte: `_lines` treats such files as binary.
_NO_END = "\0"


def _lines(data: bytes) -> list[str] | None:
    if b"\0" in data:
        return None
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        return None
    last = lines.pop()
    return [*lines, last + _NO_END] if last else lines


LOCK_WAIT_S = 10.0


class TreeChange(Struct, frozen=True):
    """The changes of a write, done or planned. Paths are sorted and include the index.

    Attributes:
        added: new files.
        changed: files with new content.
        removed: removed files.
        unchanged: how many output files are up to date.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int

    @property
    def is_empty(self) -> bool:
        """Whether the tree is up to date."""
        return not (self.added or self.changed or self.removed)


def plan_tree(
    root: Path,
    files: Mapping[str, FileContent],
    *,
    scope: Scope | None = None,
    state: TreeState | None = None,
    inside: Path | None = None,
) -> TreeChange:
    """Return what `write_tree` would do, or raise what it would raise. Writes nothing and takes no lock."""
    with _system_errors(root):
        changeset = compute_changeset(resolve_root(root, inside), files, scope, state)
        if state is not None:
            _remember(state, changeset)
        return _tree_change(changeset)


def write_tree(
    root: Path,
    files: Mapping[str, FileContent],
    *,
    scope: Scope | None = None,
    state: TreeState | None = None,
    inside: Path | None = None,
    wait_s: float = LOCK_WAIT_S,
) -> TreeChange:
    """Write files to a tree and remove all other files that kaigen wrote there earlier.

    Args:
        root: the tree's directory, created with its parents if it does not exist. It stays when it becomes empty.
        files: content by path relative to `root`, with `/` as separator.
        scope: which of kaigen's files may be removed; None for all. A render of some of the specs passes the
            files of those specs.
        state: the digests of earlier runs; updated in root.
        inside: the repository that must contain the tree; None for a directory that the user named.
        wait_s: how long to wait for another writer in the same parent directory, in seconds.

    Returns:
        The changes.

    Raises:
        InputError: KG0601, a foreign file is in the way; KG0602 and KG0604, the directory cannot be an output tree;
            KG0603, two paths conflict; KG0605, the index is damaged. Nothing was written.
        SystemFailure: permissions, disk space, or another writer. Nothing was written.
        ValueError: a path is absolute, leaves the tree or is not allowed in the index.
    """
    with _system_errors(root):
        output_root = resolve_root(root, inside)
        if not files and not os.path.isdir(output_root.parent):
            return TreeChange((), (), (), 0)
        with write_lock(output_root, wait_s) as parent:
            recover(parent, output_root.name)
            changeset = compute_changeset(output_root, files, scope, state)
            _apply(output_root, parent, changeset, files, state)
        return _tree_change(changeset)


def diff_tree(
    root: Path, files: Mapping[str, FileContent], change: TreeChange, *, scope: Scope | None = None
) -> Iterator[str]:
    """Yield a planned change as a unified diff.

    Args:
        root: the tree's directory.
        files: the files of the tree after the change.
        change: the result of `plan_tree`.
        scope: the scope given to `plan_tree`.

    Yields:
        Lines without their ends.
    """
    with _system_errors(root):
        output_root = resolve_root(root)
        for path in sorted({*change.added, *change.changed, *change.removed}):
            old = None if path in change.added else read_file(os.path.join(output_root.path, path))
            new: bytes | None = None
            if path == INDEX_NAME and path not in change.removed:
                new = index_after(read_index(output_root)[0], files, scope)
            elif path not in change.removed:
                new = data_of(files[path])
            yield from unified_diff(path, old, new)


def _tree_change(changeset: Changeset) -> TreeChange:
    return TreeChange(
        tuple(sorted(changeset.added)),
        tuple(sorted(changeset.writes.keys() - changeset.added)),
        tuple(sorted(changeset.removes)),
        changeset.unchanged,
    )


def _apply(
    root: OutputRoot, parent: int, changeset: Changeset, files: Mapping[str, FileContent], state: TreeState | None
) -> None:
    touched = changeset.writes.keys() | changeset.removes
    if not touched:
        if state is not None:
            _remember(state, changeset)
        return
    at = _common_directory(touched)
    with Staging(parent, root.name, changeset.owned | {INDEX_NAME}) as staging:
        if len(touched) == 1 and not changeset.removes and os.path.isdir(os.path.join(root.path, at)):
            (path,) = touched
            staging.replace_file(path, changeset.writes[path])
            moved = [path] if path in files else []
        else:
            staging.replace_directory(at, changeset.writes, changeset.removes)
            moved = [path for path in files if path.startswith(at + "/") or not at]
    if state is None:
        return
    # Creating or deleting a hard link changes a file's ctime; everything else must be as it was read or written. If one
    # written file still has its stamp after the move, then this file system keeps the stamps of all written files.
    settled = False
    for path in moved:
        before = staging.written.get(path)
        seen = (before, digest_of(files[path])) if before is not None else changeset.stamps.get(path)
        now = before if before is not None and settled else _stamp_now(root, path)
        settled = settled or (before is not None and before == now)
        if seen is not None and now is not None and _is_same_but_ctime(seen[0], now):
            changeset.stamps[path] = (now, seen[1])
        else:
            changeset.stamps.pop(path, None)
    _remember(state, changeset, staging.written, staging.done_ns)


def _remember(state: TreeState, changeset: Changeset, written: Container[str] = (), written_ns: int = 0) -> None:
    for path, (stamp, known) in changeset.stamps.items():
        state.remember(path, stamp, known, written_ns if path in written else changeset.checked_ns)
    state.forget_others(changeset.wanted)


def _common_directory(paths: Iterable[str]) -> str:
    """Return the deepest directory above all these files; empty for the root."""
    first, *others = (path.split("/")[:-1] for path in paths)
    for other in others:
        same = 0
        for ours, theirs in zip(first, other, strict=False):
            if ours != theirs:
                break
            same += 1
        del first[same:]
    return "/".join(first)


def _stamp_now(root: OutputRoot, path: str) -> Stamp | None:
    try:
        return stamp_of(os.lstat(f"{root.path}/{path}"))
    except OSError:
        return None


def _is_same_but_ctime(one: Stamp, other: Stamp) -> bool:
    return (one[0], one[1], one[3]) == (other[0], other[1], other[3])


@contextmanager
def _system_errors(root: Path) -> Iterator[None]:
    """Turn errors of the file system into errors that name the directory and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EXDEV:
            message = "kaigen cannot replace the output directory: it contains a mount point or is in an image layer"
            hint = "choose a separate output directory, such as 'deploy'"
            raise InputError.of("KG0604", message, mark=Mark(str(root)), hint=hint) from error
        reason = error.strerror or str(error)
        file = os.fsencode(error.filename).decode(errors="replace") if isinstance(error.filename, str) else ""
        message = f"cannot use the output directory {root}: {reason}" + (f" ({file})" if file else "")
        raise SystemFailure(message, hint=_HINTS.get(error.errno or 0, "")) from error


_DISK_SPACE = "free some disk space; the tree is unchanged"
_PERMISSIONS = "kaigen replaces the whole directory, so it needs write permission in its parent directory too"
_HINTS = {
    errno.ENOSPC: _DISK_SPACE,
    errno.EDQUOT: _DISK_SPACE,
    errno.EACCES: _PERMISSIONS,
    errno.EPERM: _PERMISSIONS,
    errno.EROFS: _PERMISSIONS,
}
