"""Computes the checksums of a file while it is fetched."""

from __future__ import annotations

import hashlib

from kaigen_downloader.remote import RemoteFile

FETCHES_OF_A_BAD_FILE = 3
CRC32C = "crc32c:"
"""Begins the checksum of an object of Google without an MD5, as one of several parts is."""
_PIECE = 1 << 20


def crc32c(view: memoryview, before: int = 0) -> int:
    """Return the CRC32C of bytes, and of those before whose CRC32C is given."""
    from google_crc32c import extend

    for start in range(0, len(view), _PIECE):
        # It takes no memoryview. A small copy is still in the cache of the processor when it is read.
        before = extend(before, bytes(view[start : start + _PIECE]))
    return before


class _Crc32c:
    """The CRC32C of an object of Google."""

    def __init__(self, sum_: int = 0) -> None:
        self._sum = sum_

    def copy(self) -> _Crc32c:
        return _Crc32c(self._sum)

    def update(self, view: memoryview) -> None:
        self._sum = crc32c(view, self._sum)

    def etag(self) -> str:
        return f"{CRC32C}{self._sum:08x}"


class _Md5:
    """The MD5 of an object of S3, or the MD5 of the MD5s of its parts and their number."""

    def __init__(self, part: int) -> None:
        self._part = part
        self._room = part
        self._current = hashlib.md5(usedforsecurity=False)
        self._parts: list[bytes] = []

    def copy(self) -> _Md5:
        other = _Md5(self._part)
        other._room, other._current, other._parts = self._room, self._current.copy(), [*self._parts]
        return other

    def update(self, view: memoryview) -> None:
        while self._part and len(view) >= self._room:
            self._current.update(view[: self._room])
            view = view[self._room :]
            self._parts.append(self._current.digest())
            self._current, self._room = hashlib.md5(usedforsecurity=False), self._part
        self._current.update(view)
        self._room -= len(view)

    def etag(self) -> str:
        if not self._part:
            return self._current.hexdigest()
        parts = [*self._parts, *([self._current.digest()] if self._room < self._part else [])]
        return f"{hashlib.md5(b''.join(parts), usedforsecurity=False).hexdigest()}-{len(parts)}"


class Digest:
    """The sha256, and the checksum that the source has if it is another one."""

    def __init__(self, remote: RemoteFile) -> None:
        """Start with no bytes."""
        self._remote = remote
        self._sha256 = hashlib.sha256()
        self._git = hashlib.sha1(usedforsecurity=False) if remote.git_sha1 is not None else None
        if self._git is not None:
            self._git.update(b"blob %d\0" % remote.size)
        self._md5: _Md5 | _Crc32c | None = None
        if remote.md5 and remote.oid == remote.md5:
            self._md5 = _Crc32c() if remote.md5.startswith(CRC32C) else _Md5(remote.md5_part)

    def copy(self) -> Digest:
        """Return a copy of the state."""
        other = Digest.__new__(Digest)
        other._remote = self._remote
        other._sha256 = self._sha256.copy()
        other._git = self._git.copy() if self._git is not None else None
        other._md5 = self._md5.copy() if self._md5 is not None else None
        return other

    def update(self, view: memoryview) -> None:
        """Add the next bytes."""
        self._sha256.update(view)
        if self._git is not None:
            self._git.update(view)
        if self._md5 is not None:
            self._md5.update(view)

    @property
    def sha256(self) -> str:
        """Return the sha256 in hex, for the marker."""
        return self._sha256.hexdigest()

    def matches(self) -> bool:
        """Return whether the bytes match the source's checksum; always True if the source has none."""
        if not self._remote.provable:
            return True
        if self._git is not None:
            return self._git.hexdigest() == self._remote.git_sha1
        if self._md5 is not None:
            return self._md5.etag() == self._remote.md5
        return self.sha256 == self._remote.sha256
