"""Reads the file system at the paths of an output tree, without following symbolic links."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISLNK, S_ISREG

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.output.index import fold, parents
from kaigen.output.root import OutputRoot
from kaigen.system.limits import FOLDER_DEPTH

MOVE_IT = "move it away, or choose another output directory"


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
