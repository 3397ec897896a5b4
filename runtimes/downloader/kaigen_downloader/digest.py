"""Computes the checksums of a file while it is fetched."""

from __future__ import annotations

import hashlib

from kaigen_downloader.remote import RemoteFile

FETCHES_OF_A_BAD_FILE = 3


class Digest:
    """The sha256, and for files that the Hub identifies by Git's blob id also that."""

    def __init__(self, remote: RemoteFile) -> None:
        """Start with no bytes."""
        self._remote = remote
        self._sha256 = hashlib.sha256()
        self._git = hashlib.sha1(usedforsecurity=False) if remote.git_sha1 is not None else None
        if self._git is not None:
            self._git.update(b"blob %d\0" % remote.size)

    def copy(self) -> Digest:
        """Return a copy of the state."""
        other = Digest.__new__(Digest)
        other._remote = self._remote
        other._sha256 = self._sha256.copy()
        other._git = self._git.copy() if self._git is not None else None
        return other

    def update(self, view: memoryview) -> None:
        """Add the next bytes."""
        self._sha256.update(view)
        if self._git is not None:
            self._git.update(view)

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
        return self.sha256 == self._remote.sha256
