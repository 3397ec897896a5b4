"""The interface of a destination: a folder or a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kaigen_downloader.folder import STATE
from kaigen_downloader.marker import StoredFile
from kaigen_downloader.net import Net
from kaigen_downloader.progress import Meter
from kaigen_downloader.ranges import Bytes, Refusal
from kaigen_downloader.remote import Layer, RemoteFile, Snapshot, Source
from kaigen_downloader.retry import Retry

OWNED = f"{STATE}/owned.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done to a store.

    Attributes:
        listing: the files that it must have.
        kept: sha256 by path of the files that it already has.
        missing: the others.
        gone: files that are ours and not wanted any more.
        owned: all files that are ours, of this model and of those before.
    """

    listing: Snapshot
    kept: dict[str, str]
    missing: tuple[RemoteFile, ...]
    gone: tuple[str, ...]
    owned: frozenset[str]


@dataclass(frozen=True, slots=True)
class Work:
    """What a store needs to fetch files.

    Attributes:
        net: the client.
        meter: gets every byte that arrives.
        retry: for failures that pass; its `stop` is set when the work ends, normally or by a failure.
        refusal: for those that do not.
        connections: threads, each with one connection to the server of the bytes.
        part_size: bytes asked for at once.
        source: where the files are.
    """

    net: Net
    meter: Meter
    retry: Retry
    refusal: Refusal
    connections: int
    part_size: int
    source: Source

    def serve(self, remote: RemoteFile) -> Bytes:
        """A file at its source."""
        return self.source.served(remote, self)


class Files(Protocol):
    """Small files by their paths. All methods raise a Failure, or OSError, when the place fails."""

    def read(self, path: str) -> bytes | None:
        """The content, or None when it is not there."""

    def write(self, path: str, data: bytes) -> None:
        """Puts it there in one step."""

    def file_size(self, path: str) -> int | None:
        """Bytes, or None when it is not there."""


class Store(Files, Protocol):
    """Where the files of a model are stored. It detects other writers while it is open."""

    def record(self, path: str, data: bytes) -> None:
        """Put a small file there that does not belong to one model, in one step."""

    def owned(self) -> set[str]:
        """Return the files that unfinished runs may have written."""

    def intact(self, listing: Snapshot) -> dict[str, str]:
        """Return the sha256 of each file that already has the right content, by path."""

    def check_space(self, plan: Plan) -> None:
        """Check before the first byte that the model fits.

        Raises:
            NoSpace: it does not fit, even after everything to be removed is gone.
        """

    def check_names(self, paths: Iterable[str]) -> None:
        """Check that each file has a name of its own here.

        Raises:
            BadInput: two files would be one.
        """

    def clear(self, plan: Plan) -> None:
        """Record this run's files, remove the marker so that no pod uses the folder, then remove obsolete files."""

    def kept_bytes(self, file: RemoteFile) -> int:
        """Bytes of an unfinished file that an earlier run has left and this one goes on from."""

    def fill(self, files: Sequence[RemoteFile], work: Work) -> dict[str, str]:
        """Fetches files.

        Returns:
            Their sha256 by path.
        """

    def take(self, root: Files, offers: Mapping[str, str]) -> set[str]:
        """Put files that the folder above has into this one, without their bytes going over the network.

        Args:
            root: the folder above, opened as a store of the same type.
            offers: path in that folder by path of the file. Files that are already here are left out.

        Returns:
            The paths of those that could be.
        """

    def unpack(self, layers: Sequence[Layer], plan: Plan) -> list[StoredFile]:
        """Write the files in layers, which this store has under their paths.

        Returns:
            The files.

        Raises:
            BadInput: a layer has links, names that lead out of the folder, or is not an archive.
        """

    def drop_layers(self) -> None:
        """Remove the layers whose files are in place, also those of an earlier run."""

    def tidy(self) -> None:
        """Removes what is left of unfinished files. Called when all are in place, before the marker is written."""

    def disown(self) -> None:
        """Forgets the note of what is ours: from now on the marker says it."""

    def discard(self) -> None:
        """Remove the emptied store itself; files that are not ours stay."""
