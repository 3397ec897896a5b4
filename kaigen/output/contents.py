"""The content of output files, bytes or an object that knows their digest, and the digests that a run remembers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from hashlib import sha256
from typing import Protocol, TypeAlias


class Content(Protocol):
    """Bytes that are read only when they must be written.

    For a caller that knows the digest from a cache: an output file that is up to date then costs no read.
    """

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, as 64 lower-case hexadecimal digits."""

    def read(self) -> bytes:
        """Return the bytes."""


FileContent: TypeAlias = bytes | Content
"""The content of one output file: plain bytes, or an object that knows their digest."""


def data_of(content: FileContent) -> bytes:
    """Return the bytes of a content."""
    return content if isinstance(content, bytes) else content.read()


def digest_of(content: FileContent) -> str:
    """Return the SHA-256 of a content in hexadecimal; it is computed only for plain bytes."""
    return digest(content) if isinstance(content, bytes) else content.digest


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal."""
    return sha256(data, usedforsecurity=False).hexdigest()


Stamp: TypeAlias = tuple[int, int, int, int]
"""Size in bytes, mtime and ctime in nanoseconds, inode: the content is unchanged while all four are."""

_HEADER = "kaigen tree state 1"
_SECOND = 1_000_000_000


def stamp_of(found: os.stat_result) -> Stamp:
    """Return the stamp of a file."""
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def _is_settled(mtime_ns: int, checked_ns: int) -> bool:
    """Return whether any write after `checked_ns` is sure to change the mtime of the file.

    Timestamps advance in ticks: up to 10 ms on Linux, two seconds on FAT. A write within one tick of the check can
    leave mtime and size unchanged.
    """
    tick = 2 * _SECOND if mtime_ns % _SECOND == 0 else _SECOND // 50
    return mtime_ns < checked_ns - tick


class TreeState:
    """The digests of a tree's files, each with the stamp that it was computed for, similar to Git's index.

    `plan_tree` and `write_tree` update it in place and do not read files whose stamp is unchanged. Store `dump()`
    in a cache between runs; losing it only costs time. It belongs to one tree and is not safe for threads.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Stamp, str]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def digest(self, path: str, stamp: Stamp) -> str | None:
        """Return the digest of a file with this stamp, or None when the file must be read."""
        entry = self._entries.get(path)
        return entry[1] if entry is not None and entry[0] == stamp else None

    def remember(self, path: str, stamp: Stamp, digest: str, checked_ns: int) -> None:
        """Store a digest that was valid at `checked_ns` (epoch), unless the file is too new to be sure."""
        if _is_settled(stamp[1], checked_ns):
            self._entries[path] = (stamp, digest)
        else:
            self._entries.pop(path, None)

    def forget_others(self, paths: Iterable[str]) -> None:
        """Drop the digests of all other files."""
        for path in self._entries.keys() - set(paths):
            del self._entries[path]

    def dump(self) -> bytes:
        """Return the state as bytes, for `load`."""
        lines = [_HEADER]
        for path, ((size, mtime, ctime, inode), known) in sorted(self._entries.items()):
            lines.append(f"{path}\t{size}\t{mtime}\t{ctime}\t{inode}\t{known}")
        body = "\n".join(lines)
        return f"{body}\n{digest(body.encode())}".encode()

    @classmethod
    def load(cls, data: bytes) -> TreeState:
        """Return the state that `dump` wrote; empty when it is damaged or of another version."""
        state = cls()
        try:
            body, _, check = data.decode().rpartition("\n")
            header, *lines = body.split("\n")
            if header != _HEADER or check != digest(body.encode()):
                return state
            entries = {}
            for line in lines:
                path, size, mtime, ctime, inode, known = line.split("\t")
                entries[path] = ((int(size), int(mtime), int(ctime), int(inode)), known)
        except ValueError:
            return state
        state._entries = entries
        return state


def now_ns() -> int:
    """Return the current time in nanoseconds since the epoch, to compare with stamps."""
    return time.time_ns()
