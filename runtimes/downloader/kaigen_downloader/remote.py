"""Files that a source offers, and what is wrong with a list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kaigen_downloader.errors import BadInput, Failure
from kaigen_downloader.folder import STATE, split
from kaigen_downloader.net import Net
from kaigen_downloader.retry import Retry


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file that a source offers.

    Attributes:
        path: relative, checked to stay inside the folder.
        size: bytes.
        sha256: where it is known, else None.
        git_sha1: git's name of the blob, for small files of the Hub, else None.
        url: where it is served or redirected.
        version: what its server tells one content from another by, an `ETag`; for files without a checksum.
    """

    path: str
    size: int
    sha256: str | None
    git_sha1: str | None
    url: str
    version: str = ""

    @property
    def oid(self) -> str:
        """What tells this content from another: a checksum, or the server's own word."""
        return self.sha256 or self.git_sha1 or self.version

    @property
    def provable(self) -> bool:
        """Whether its bytes can be told from others of the same number."""
        return self.sha256 is not None or self.git_sha1 is not None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a source holds at one moment: the files chosen from it.

    Attributes:
        commit: the source's name for that moment, or a hash of what the files are.
        files: sorted by path.
    """

    commit: str
    files: tuple[RemoteFile, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


class Source(Protocol):
    """Where files come from."""

    @property
    def endpoint(self) -> str:
        """URL whose origin alone gets the token."""

    @property
    def name(self) -> str:
        """Short, for messages: `OWNER/NAME@main`."""

    @property
    def facts(self) -> Mapping[str, str]:
        """What the marker says of it beside the commit: its `type`, and what else tells it."""

    def snapshot(self, net: Net, retry: Retry, token: bool) -> Snapshot:
        """Asks what there is.

        Args:
            net: the client, which adds the token.
            retry: for failures that pass.
            token: whether one is given, for the messages.

        Raises:
            Failure: it cannot be had, or is not to be had.
        """

    def refusal(self, path: str, status: int, code: str, message: str, token: bool) -> Failure:
        """The permanent failure that an answer for a file means."""


def check_names(listed: Sequence[str]) -> None:
    """Refuses a listing that could do harm.

    Raises:
        BadInput: a name that leads out of the folder, is our own, stands twice, or is at once a file and a folder.
    """
    paths: set[str] = set()
    for path in listed:
        if split(path)[0] == STATE:
            raise BadInput(f"the source has a file {path!r}, a name that this program keeps for itself")
        if path in paths:
            raise BadInput(f"the source lists {path!r} twice")
        paths.add(path)
    for path in paths:
        parts = split(path)
        for end in range(1, len(parts)):
            if "/".join(parts[:end]) in paths:
                raise BadInput(f"the source has {'/'.join(parts[:end])!r} as a file and as a folder")
