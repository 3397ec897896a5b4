"""The output tree: what kaigen writes, and nothing else in the same directory.

A tree is a directory that may also hold files of others. Which files are kaigen's is said by an index in it,
`.kaigen-index`; all others survive every write as they are. A write happens as a whole or not at all, even
when the process is killed: see `kaigen.output.staging`.

Modes are no part of a tree's content: new files are 0644 and new directories 0755 whatever the umask, and
the mode of a file whose content is right is left alone, for Git checkouts choose it by their own umask.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kaigen.diagnostics.diagnostic import InputError, Mark, SystemFailure
from kaigen.output.changeset import Disk, Scope, Survey, index_after, read_file, read_index, survey
from kaigen.output.contents import FileContent, Stamp, TreeState, data_of, digest_of, stamp_of
from kaigen.output.index import INDEX_NAME
from kaigen.output.location import Place, find_place, hold
from kaigen.output.staging import Staging, sweep

LOCK_WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class TreeChange:
    """What a write does, or would do, to a tree. Paths are sorted and include the index itself.

    Attributes:
        added: files that were not there.
        changed: files that held something else.
        removed: files that go.
        unchanged: how many output files are right as they are.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int

    @property
    def is_empty(self) -> bool:
        """True when the tree holds exactly what it shall."""
        return not (self.added or self.changed or self.removed)


def plan_tree(
    root: Path,
    files: Mapping[str, FileContent],
    *,
    scope: Scope | None = None,
    state: TreeState | None = None,
) -> TreeChange:
    """Say what `write_tree` would do, or refuse as it would. Writes nothing and takes no lock."""
    with _system_errors(root):
        found = survey(find_place(root), files, scope, state)
        if state is not None:
            _remember(state, found)
        return _change(found)


def write_tree(
    root: Path,
    files: Mapping[str, FileContent],
    *,
    scope: Scope | None = None,
    state: TreeState | None = None,
    wait_s: float = LOCK_WAIT_S,
) -> TreeChange:
    """Make a tree hold exactly these files, among those that are kaigen's.

    Args:
        root: the tree's directory; made, with its parents, when it does not exist. It stays when all goes.
        files: content by path relative to `root`, with slashes.
        scope: which of kaigen's files may be removed; all when None. A render of some of the specs passes
            what belongs to those.
        state: what earlier runs learnt about the tree; brought up to date.
        wait_s: how long to wait for another writer in the same parent directory, in seconds.

    Returns:
        What was done.

    Raises:
        InputError: KG0601 a file of others is in the way, KG0602 and KG0604 the directory cannot be an output
            tree, KG0603 paths that cannot stand side by side, KG0605 a damaged index. Nothing was written.
        SystemFailure: permissions, disk space, or another writer. Nothing was written.
        ValueError: a path that is absolute, leaves the tree or cannot stand in the index.
    """
    with _system_errors(root):
        place = find_place(root)
        if not files and not os.path.isdir(place.parent):
            return TreeChange((), (), (), 0)
        with hold(place, wait_s) as parent:
            sweep(parent)
            found = survey(place, files, scope, state)
            _apply(place, parent, found, files, state)
        return _change(found)


def diff_tree(
    root: Path, files: Mapping[str, FileContent], change: TreeChange, *, scope: Scope | None = None
) -> Iterator[str]:
    """Show a change that was planned as a unified diff.

    Args:
        root: the tree's directory.
        files: what it shall hold.
        change: as `plan_tree` returned it.
        scope: as given to `plan_tree`.

    Yields:
        Lines without their ends.
    """
    from kaigen.diff.unified import unified_diff

    with _system_errors(root):
        place = find_place(root)
        for path in sorted({*change.added, *change.changed, *change.removed}):
            old = None if path in change.added else read_file(os.path.join(place.path, path))
            new: bytes | None = None
            if path == INDEX_NAME and path not in change.removed:
                new = index_after(read_index(place)[0], files, scope)
            elif path not in change.removed:
                new = data_of(files[path])
            yield from unified_diff(path, old, new)


def read_tree(root: Path) -> dict[str, bytes]:
    """The content of all files in a tree that are kaigen's, without the index, sorted by path.

    Owned paths where there is no plain file any more are left out.
    """
    with _system_errors(root):
        place = find_place(root)
        owned, _ = read_index(place)
        disk = Disk(place, frozenset())
        return {
            path: read_file(os.path.join(place.path, path))
            for path in sorted(owned)
            if disk.is_own_file(path)
        }


def _change(found: Survey) -> TreeChange:
    return TreeChange(
        tuple(sorted(found.added)),
        tuple(sorted(found.writes.keys() - found.added)),
        tuple(sorted(found.removes)),
        found.unchanged,
    )


def _apply(
    place: Place, parent: int, found: Survey, files: Mapping[str, FileContent], state: TreeState | None
) -> None:
    touched = found.writes.keys() | found.removes
    if not touched:
        if state is not None:
            _remember(state, found)
        return
    at = _common_directory(touched)
    with Staging(parent, place.name, found.owned | {INDEX_NAME}) as staging:
        if len(touched) == 1 and not found.removes and os.path.isdir(os.path.join(place.path, at)):
            (path,) = touched
            staging.replace_file(path, found.writes[path])
            moved = [path] if path in files else []
        else:
            staging.replace_directory(at, found.writes, found.removes)
            moved = [path for path in files if path.startswith(at + "/") or not at]
    if state is None:
        return
    # Making or deleting a hard link changes a file's ctime; otherwise it must be as it was seen or written. A file
    # that was written and not linked is still as it was then, where the file system shows that of one of them.
    settled = False
    for path in moved:
        before = staging.written.get(path)
        seen = (before, digest_of(files[path])) if before is not None else found.stamps.get(path)
        now = before if before is not None and settled else _stamp_now(place, path)
        settled = settled or (before is not None and before == now)
        if seen is not None and now is not None and _is_same_but_ctime(seen[0], now):
            found.stamps[path] = (now, seen[1])
        else:
            found.stamps.pop(path, None)
    _remember(state, found, staging.written, staging.done_ns)


def _remember(state: TreeState, found: Survey, written: Container[str] = (), written_ns: int = 0) -> None:
    for path, (stamp, known) in found.stamps.items():
        state.remember(path, stamp, known, written_ns if path in written else found.checked_ns)
    state.forget_others(found.wanted)


def _common_directory(paths: Iterable[str]) -> str:
    """The deepest directory that holds all these files; empty for the root."""
    first, *others = (path.split("/")[:-1] for path in paths)
    for other in others:
        same = 0
        for ours, theirs in zip(first, other, strict=False):
            if ours != theirs:
                break
            same += 1
        del first[same:]
    return "/".join(first)


def _stamp_now(place: Place, path: str) -> Stamp | None:
    try:
        return stamp_of(os.lstat(f"{place.path}/{path}"))
    except OSError:
        return None


def _is_same_but_ctime(one: Stamp, other: Stamp) -> bool:
    return (one[0], one[1], one[3]) == (other[0], other[1], other[3])


@contextmanager
def _system_errors(root: Path) -> Iterator[None]:
    """Say what the file system refuses in words that help."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EXDEV:
            message = (
                "kaigen cannot swap the output directory: something is mounted in it, or it lies in a layer"
            )
            message += " of a container image"
            hint = "choose an output directory of its own, such as 'deploy'"
            raise InputError.of("KG0604", message, mark=Mark(str(root)), hint=hint) from error
        what = error.strerror or str(error)
        where = (
            os.fsencode(error.filename).decode(errors="replace") if isinstance(error.filename, str) else ""
        )
        message = f"cannot use the output directory {root}: {what}" + (f" ({where})" if where else "")
        raise SystemFailure(message, hint=_HINTS.get(error.errno or 0, "")) from error


_ROOM = "free some space; the tree is as it was"
_RIGHTS = (
    "kaigen replaces directories as a whole, so it must be able to write in the parent of the output too"
)
_HINTS = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
}
