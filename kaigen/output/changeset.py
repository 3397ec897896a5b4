"""Computes what a write changes in an output tree. Only reads, and follows no symbolic links."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from stat import S_ISDIR, S_ISLNK, S_ISREG

from msgspec import Struct

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.output.contents import FileContent, Stamp, TreeState, digest, digest_of, now_ns, stamp_of
from kaigen.output.index import (
    INDEX_NAME,
    check_paths,
    collisions,
    fold,
    format_index,
    parents,
    parse_index,
    read_index_file,
)
from kaigen.output.root import OutputRoot
from kaigen.system.limits import FOLDER_DEPTH

MOVE_IT = "move it away, or choose another output directory"

Scope = Callable[[str], bool]
"""Whether this run may remove the file at a path of the tree."""


class Changeset(Struct, frozen=True):
    """The changes that a write makes.

    Attributes:
        owned: paths in the index before the write.
        wanted: paths in the index after the write.
        writes: files to write, including the index if it changes.
        added: the paths of `writes` that do not exist yet.
        removes: files to remove, including the index if no file is left.
        unchanged: how many files are up to date, including the index.
        stamps: stamp and digest of each file that is up to date; only if a state was given.
        checked_ns: when the comparison started, in nanoseconds since the epoch.
    """

    owned: frozenset[str]
    wanted: frozenset[str]
    writes: dict[str, FileContent]
    added: frozenset[str]
    removes: frozenset[str]
    unchanged: int
    stamps: dict[str, tuple[Stamp, str]]
    checked_ns: int


def read_index(root: OutputRoot) -> tuple[frozenset[str], bytes]:
    """Return the owned paths and the bytes of a tree's index; both empty when it has none.

    Raises:
        InputError: KG0104, the index is too large; KG0605, it is damaged.
    """
    mark = root.mark(INDEX_NAME)
    path = os.path.join(root.path, INDEX_NAME)
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return frozenset(), b""
    if not S_ISREG(status.st_mode):
        hint = "restore the file from Git"
        raise InputError.of(
            "KG0605", f"the index is {kind_of(status.st_mode)}, not a regular file", mark=mark, hint=hint
        )
    data = read_index_file(path, mark.file)
    owned, diagnostics = parse_index(data, mark.file)
    diagnostics.raise_errors()
    return owned, data


def index_after(owned: frozenset[str], files: Mapping[str, object], scope: Scope | None) -> bytes:
    """Return the index after a write: `files`, and the owned paths that are out of scope."""
    kept = (path for path in owned if not scope(path)) if scope is not None else ()
    return format_index({*files, *kept})


def compute_changeset(
    root: OutputRoot, files: Mapping[str, FileContent], scope: Scope | None, state: TreeState | None
) -> Changeset:
    """Compare a tree with the files that it must have.

    Raises:
        InputError: KG0601, KG0603 and KG0605; all errors of one code at once.
        ValueError: kaigen must not own a path of `files`.
    """
    checked_ns = now_ns()
    owned, index = read_index(root)
    check_paths(files.keys() - owned)
    kept = frozenset(path for path in owned if path not in files and not scope(path)) if scope else frozenset()
    wanted = frozenset(files.keys() | kept)
    diagnostics = Diagnostics()
    for first, second in collisions(wanted):
        diagnostics.add(_collision(root, first, second))
    diagnostics.raise_errors()

    disk = Disk(root, owned - wanted)
    stamps: dict[str, tuple[Stamp, str]] = {}
    writes: dict[str, FileContent] = {}
    added: set[str] = set()
    for path, content in files.items():
        entry = disk.find(path, diagnostics)
        if entry is None or disk.is_stale_alias(path):
            writes[path] = content
            added.add(path)
        elif S_ISREG(entry.st_mode) and _is_up_to_date(root, path, entry, content, state, stamps):
            pass
        elif path in owned and S_ISREG(entry.st_mode):
            writes[path] = content
        else:
            diagnostics.add(_foreign(root, path, entry.st_mode))
    diagnostics.raise_errors()

    removes = {path for path in disk.stale if disk.is_own_file(path)}
    unchanged = len(files) - len(writes)
    new_index = format_index(wanted)
    if new_index != index:
        if new_index:
            writes[INDEX_NAME] = new_index
        else:
            removes.add(INDEX_NAME)
        if not index:
            added.add(INDEX_NAME)
    elif index:
        unchanged += 1
    return Changeset(owned, wanted, writes, frozenset(added), frozenset(removes), unchanged, stamps, checked_ns)


def _is_up_to_date(
    root: OutputRoot,
    path: str,
    status: os.stat_result,
    content: FileContent,
    state: TreeState | None,
    stamps: dict[str, tuple[Stamp, str]],
) -> bool:
    """Return whether a regular file already has this content."""
    if state is None:
        return _has_content(root, path, status, content)
    stamp = stamp_of(status)
    known = state.digest(path, stamp)
    wanted = digest_of(content)
    same = _has_content(root, path, status, content) if known is None else known == wanted
    if same:
        stamps[path] = (stamp, wanted)
    return same


def _has_content(root: OutputRoot, path: str, status: os.stat_result, content: FileContent) -> bool:
    file = f"{root.path}/{path}"
    if isinstance(content, bytes):
        return status.st_size == len(content) and read_file(file) == content
    return digest(read_file(file)) == content.digest


def _foreign(root: OutputRoot, path: str, mode: int) -> Diagnostic:
    if S_ISREG(mode):
        message = "kaigen did not write this file and will not overwrite it"
    else:
        message = f"this is {kind_of(mode)} that kaigen did not create and will not replace"
    return Diagnostic("KG0601", message, root.mark(path), MOVE_IT)


def _collision(root: OutputRoot, first: str, second: str) -> Diagnostic:
    if second.startswith(first + "/"):
        message = f"one output is a file at this path, another needs a directory here for {second}"
    else:
        message = f"outputs differ only in case or Unicode form: {first} and {second}"
    hint = "rename one of the specs; some file systems treat the two paths as one"
    return Diagnostic("KG0603", message, root.mark(first), hint)


class Disk:
    """The entries of the file system at the paths of a tree. Follows no symbolic link."""

    def __init__(self, root: OutputRoot, stale: frozenset[str]) -> None:
        self.stale = stale
        self._root = root
        self._base = root.path + "/"
        self._directories: dict[str, bool | None] = {"": root.exists}
        self._stale_folded = {fold(path) for path in stale}
        self._listings: dict[str, frozenset[str]] = {}

    def find(self, path: str, diagnostics: Diagnostics) -> os.stat_result | None:
        """Return the entry at the path of an output file; None when there is none, or only stale files.

        Adds KG0603 when a foreign file or directory makes the path impossible.
        """
        above = path.rpartition("/")[0]
        inside = self._is_directory(above)
        if inside is None:
            blocker = next(p for p in reversed(list(parents(path))) if self._is_directory(p) is None)
            diagnostics.add(_blocked(self._root, blocker))
            return None
        found = self._lstat(path) if inside else None
        if found is None or not S_ISDIR(found.st_mode):
            return found
        foreign = self._first_foreign(path)
        if foreign:
            diagnostics.add(_occupied(self._root, path, foreign))
        return None

    def is_own_file(self, path: str) -> bool:
        """Return whether an owned path is a regular file, with only directories above it."""
        if not self._is_directory(path.rpartition("/")[0]):
            return False
        found = self._lstat(path)
        return found is not None and S_ISREG(found.st_mode)

    def is_stale_alias(self, path: str) -> bool:
        """Return whether the entry is a stale file of kaigen whose path differs from this one in case only.

        Always False on case-sensitive file systems. On others the file is written again with its new name.
        """
        return fold(path) in self._stale_folded and self._as_listed(path) in self.stale

    def _as_listed(self, path: str) -> str:
        """Return an existing path in the case and Unicode form that the file system stores."""
        above, _, name = path.rpartition("/")
        above = self._as_listed(above) if above else ""
        if above not in self._listings:
            self._listings[above] = frozenset(os.listdir(self._base + above))
        names = self._listings[above]
        if name not in names:
            name = next((other for other in names if fold(other) == fold(name)), name)
        return f"{above}/{name}" if above else name

    def _lstat(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(self._base + path)
        except FileNotFoundError:
            return None

    def _is_directory(self, path: str) -> bool | None:
        """Return True; False if it does not exist or will be removed; None if it is not a directory."""
        if path in self._directories:
            return self._directories[path]
        result = self._is_directory(path.rpartition("/")[0])
        if result:
            found = self._lstat(path)
            if found is None or (path in self.stale and S_ISREG(found.st_mode)):
                result = False
            elif not S_ISDIR(found.st_mode):
                result = None
        self._directories[path] = result
        return result

    def _first_foreign(self, directory: str) -> str:
        """Return an entry below that kaigen will not remove; empty when the whole directory will be removed."""
        waiting = [directory]
        while waiting:
            folder = waiting.pop()
            with os.scandir(self._base + folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            if not found:
                return folder
            for entry in found:
                path = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False) and path.count("/") < FOLDER_DEPTH:
                    waiting.append(path)
                elif path not in self.stale or not entry.is_file(follow_symlinks=False):
                    return path
        return ""


def read_file(path: str) -> bytes:
    """Return the content of a regular file; does not follow a link as last segment, does not wait for a pipe."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        size = os.fstat(file).st_size
        data = os.read(file, size + 1)
        if len(data) == size:
            return data
        chunks = [data]
        while chunk := os.read(file, 1 << 20):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(file)


def kind_of(mode: int) -> str:
    """Return the kind of an entry, with its article."""
    if S_ISDIR(mode):
        return "a directory"
    return "a symbolic link" if S_ISLNK(mode) else "a special file"


def _blocked(root: OutputRoot, blocker: str) -> Diagnostic:
    message = "output files need a directory here, but kaigen found something else that it did not write"
    return Diagnostic("KG0603", message, root.mark(blocker), MOVE_IT)


def _occupied(root: OutputRoot, path: str, foreign: str) -> Diagnostic:
    content = "is empty, and that kaigen did not create" if foreign == path else f"contains {root.mark(foreign).file}"
    message = f"an output file belongs here, but this is a directory that {content}"
    return Diagnostic("KG0603", message, root.mark(path), MOVE_IT)
