"""The files of a source, and the validation of its listing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kaigen_downloader.errors import BadInput, Failure
from kaigen_downloader.folder import STATE, split
from kaigen_downloader.names import is_state
from kaigen_downloader.net import Net
from kaigen_downloader.retry import Retry
from kaigen_downloader.text import shown

if TYPE_CHECKING:
    from kaigen_downloader.ranges import Bytes
    from kaigen_downloader.store import Work


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a source.

    Attributes:
        path: relative, checked to stay inside the folder.
        size: bytes.
        sha256: where it is known, else None.
        git_sha1: git's name of the blob, for small files of the Hub, else None.
        url: where it is served or redirected.
        version: the server's identifier of the content, an `ETag`; for files without a checksum.
        md5: of an object without a sha256: its MD5; or `HEX-PARTS`, the MD5 of the MD5s of its parts; or
            `crc32c:HEX`, its CRC32C.
        md5_part: bytes of each part except the last one; 0 for an object of one part.
    """

    path: str
    size: int
    sha256: str | None
    git_sha1: str | None
    url: str
    version: str = ""
    md5: str = ""
    md5_part: int = 0

    @property
    def oid(self) -> str:
        """The identity of the content: a checksum, or the server's version."""
        return self.sha256 or self.git_sha1 or self.md5 or self.version

    @property
    def provable(self) -> bool:
        """Whether its content can be verified."""
        return self.sha256 is not None or self.git_sha1 is not None or bool(self.md5)


LAYERS = f"{STATE}/layers"
"""Folder with layers whose files are not unpacked yet."""


@dataclass(frozen=True, slots=True)
class Layer:
    """An archive with files, one of the files of a snapshot.

    Attributes:
        path: where it is stored.
        compressed: whether it is compressed with gzip.
        root: folder in it with the files; empty for its root.
        chosen: returns whether a file is wanted, by its path below that folder.
        is_context: whether it is a build context: its links, its folders and which files can be run are kept.
        skipped: returns which of the files of all layers are not wanted, because others have the same weights.
    """

    path: str
    compressed: bool
    root: str
    chosen: Callable[[str], bool]
    is_context: bool = False
    skipped: Callable[[Collection[str]], Collection[str]] = frozenset[str]().intersection


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The selected files of a source at one moment.

    Attributes:
        commit: the source's name for that moment, or a hash of what the files are.
        files: sorted by path.
        layers: those of the files that are archives to unpack, each over the ones before.
    """

    commit: str
    files: tuple[RemoteFile, ...]
    layers: tuple[Layer, ...] = ()

    @property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)


class Source(Protocol):
    """A source of files."""

    @property
    def endpoint(self) -> str:
        """The only URL whose origin gets the token."""

    @property
    def name(self) -> str:
        """A short name for messages: `OWNER/NAME@main`."""

    @property
    def facts(self) -> Mapping[str, str]:
        """The source for the marker, without the commit: its `type` and other identifying fields."""

    def snapshot(self, net: Net, retry: Retry, token: bool) -> Snapshot:
        """List the files.

        Args:
            net: the client, which adds the token.
            retry: for failures that pass.
            token: whether one is given, for the messages.

        Raises:
            Failure: it cannot be had, or is not to be had.
        """

    def selection(self, paths: Collection[str]) -> Collection[str]:
        """Return which of these files the source would fetch if it had them.

        Args:
            paths: all files of the source, such as those that a signature lists.
        """

    def sign(self, url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers that prove who asks for a URL of the endpoint, with these other headers."""

    def served(self, remote: RemoteFile, work: Work) -> Bytes:
        """Return the bytes of a file."""

    def refusal(self, path: str, status: int, code: str, message: str, token: bool) -> Failure:
        """Return the permanent failure for a response about a file."""


def check_names(files: Sequence[str], folders: Collection[str] = ()) -> None:
    """Reject a dangerous listing.

    Args:
        files: paths of files.
        folders: paths of folders that are made too, each once.

    Raises:
        BadInput: a name is outside the folder, is reserved, is listed twice, or is both a file and a folder.
    """
    for path in (*files, *folders):
        if is_state(split(path)[0]):
            raise BadInput(f"the source has a file {shown(path)}, which is a reserved name")
    # With the lowest character in place of each slash, what is in a folder follows the folder.
    ordered = sorted((*files, *(f"{folder}/" for folder in folders)), key=lambda path: path.replace("/", "\0"))
    for path, following in itertools.pairwise(ordered):
        if path == following:
            raise BadInput(f"the source lists {shown(path)} twice")
        if not path.endswith("/") and following.startswith(f"{path}/"):
            raise BadInput(f"the source has {shown(path)} as a file and as a folder")
