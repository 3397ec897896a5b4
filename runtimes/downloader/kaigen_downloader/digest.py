"""Checksums of a file while its bytes go by."""

from __future__ import annotations

import hashlib

from kaigen_downloader.remote import RemoteFile

FETCHES_OF_A_BAD_FILE = 3


class Digest:
    """sha256, and for files that the Hub names by git's blob id that one too."""

    def __init__(self, remote: RemoteFile) -> None:
        """Begins with no bytes seen."""
        self._remote = remote
        self._sha256 = hashlib.sha256()
        self._git = hashlib.sha1(usedforsecurity=False) if remote.git_sha1 is not None else None
        if self._git is not None:
            self._git.update(b"blob %d\0" % remote.size)

    def copy(self) -> Digest:
        """The same state, to go on from separately."""
        other = Digest.__new__(Digest)
        other._remote = self._remote
        other._sha256 = self._sha256.copy()
        other._git = self._git.copy() if self._git is not None else None
        return other

    def update(self, view: memoryview) -> None:
        """Takes the next bytes."""
        self._sha256.update(view)
        if self._git is not None:
            self._git.update(view)

    @property
    def sha256(self) -> str:
        """Hex, for the marker."""
        return self._sha256.hexdigest()

    def matches(self) -> bool:
        """Whether the bytes are those that the source names; any are, when it names none."""
        if not self._remote.provable:
            return True
        if self._git is not None:
            return self._git.hexdigest() == self._remote.git_sha1
        return self.sha256 == self._remote.sha256
