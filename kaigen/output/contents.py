"""What an output file shall hold, and what is remembered of a tree so that it need not be read again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Protocol, TypeAlias


class Content(Protocol):
    """Bytes that are fetched only when they must be written.

    For a caller that knows from a cache what a file will hold: a tree that holds it already costs no read.
    """

    @property
    def digest(self) -> str:
        """SHA-256 of what `read` returns, 64 lower-case hexadecimal digits."""

    def read(self) -> bytes:
        """All bytes of the file."""


FileContent: TypeAlias = bytes | Content
"""The content of one output file: plain bytes, or an object that knows their digest."""

Stamp: TypeAlias = tuple[int, int, int, int]
"""Size in bytes, mtime and ctime in nanoseconds, inode: while all four stay, so does the content."""


def data_of(content: FileContent) -> bytes:
    """The bytes themselves."""
    return content if isinstance(content, bytes) else content.read()


def digest_of(content: FileContent) -> str:
    """SHA-256 in hexadecimal, computed only for plain bytes."""
    return digest(content) if isinstance(content, bytes) else content.digest


def digest(data: bytes) -> str:
    """SHA-256 of bytes in hexadecimal."""
    from hashlib import sha256

    return sha256(data, usedforsecurity=False).hexdigest()


def stamp_of(found: os.stat_result) -> Stamp:
    """The four numbers of a file that say whether it was touched."""
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


_HEADER = "kaigen tree state 1"
_SECOND = 1_000_000_000


def _is_settled(mtime_ns: int, checked_ns: int) -> bool:
    """Whether a write after `checked_ns` would surely have given the file another mtime.

    Time stamps advance in ticks: up to 10 ms on Linux, two seconds on FAT. A file whose mtime lies within a
    tick of the check may be written again, to the same size, without a trace.
    """
    tick = 2 * _SECOND if mtime_ns % _SECOND == 0 else _SECOND // 50
    return mtime_ns < checked_ns - tick


class TreeState:
    """The digests of a tree's files, each with the stamp at which it was true, as Git's index keeps them.

    Given to `plan_tree` or `write_tree`, it spares the reading of files whose stamp is unchanged, and is
    brought up to date in place. Keep `dump()` between runs wherever caches live; a lost or damaged one only
    costs time. It belongs to one tree and must not be shared by threads.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[str, tuple[Stamp, str]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def digest(self, path: str, stamp: Stamp) -> str | None:
        """The digest of a file that has this stamp now, or None when it must be read."""
        entry = self._entries.get(path)
        return entry[1] if entry is not None and entry[0] == stamp else None

    def remember(self, path: str, stamp: Stamp, known: str, checked_ns: int) -> None:
        """Note a digest that was true at `checked_ns` (epoch), unless the file is too fresh to be sure."""
        if _is_settled(stamp[1], checked_ns):
            self._entries[path] = (stamp, known)
        else:
            self._entries.pop(path, None)

    def forget_others(self, paths: Iterable[str]) -> None:
        """Drop what is known of any file but these."""
        for path in self._entries.keys() - set(paths):
            del self._entries[path]

    def dump(self) -> bytes:
        """All of it as bytes, for `load`."""
        lines = [_HEADER]
        for path, ((size, mtime, ctime, inode), known) in sorted(self._entries.items()):
            lines.append(f"{path}\t{size}\t{mtime}\t{ctime}\t{inode}\t{known}")
        body = "\n".join(lines)
        return f"{body}\n{digest(body.encode())}".encode()

    @classmethod
    def load(cls, data: bytes) -> TreeState:
        """What `dump` returned; empty when it is damaged or of another version."""
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
    """The moment, in nanoseconds since the epoch, that stamps are compared with."""
    return time.time_ns()
