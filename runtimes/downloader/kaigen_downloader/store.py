"""The interface of a destination: a folder or a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kaigen_downloader.folder import STATE
from kaigen_downloader.net import Net
from kaigen_downloader.progress import Meter
from kaigen_downloader.ranges import Refusal, Served
from kaigen_downloader.remote import RemoteFile, Snapshot
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
    """

    net: Net
    meter: Meter
    retry: Retry
    refusal: Refusal
    connections: int
    part_size: int

    def serve(self, remote: RemoteFile) -> Served:
        """A file at its source."""
        return Served(remote, self.net, self.meter, self.retry, self.refusal)


class Files(Protocol):
    """Small files by their paths. All methods raise a Failure, or OSError, when the place fails."""

    def read(self, path: str) -> bytes | None:
        """The content, or None when it is not there."""

    def write(self, path: str, data: bytes) -> None:
        """Puts it there in one step."""

    def file_size(self, path: str) -> int | None:
        """Bytes, or None when it is not there."""


class Store(Files, Protocol):
    """A place that is filled. Nobody else writes to it while it is open, or it notices."""

    def owned(self) -> set[str]:
        """Files that runs which did not come to an end may have put here."""

    def intact(self, listing: Snapshot) -> dict[str, str]:
        """Those files that are here already with the right content: their sha256 by path."""

    def check_space(self, plan: Plan) -> None:
        """Says before the first byte that the model does not fit.

        Raises:
            NoSpace: it does not, even when all that will be removed is gone.
        """

    def clear(self, plan: Plan) -> None:
        """Notes what is ours, takes the marker away, so that nobody uses what is here, and then what is gone."""

    def kept_bytes(self, file: RemoteFile) -> int:
        """Bytes of an unfinished file that an earlier run has left and this one goes on from."""

    def fill(self, files: Sequence[RemoteFile], work: Work) -> dict[str, str]:
        """Fetches files.

        Returns:
            Their sha256 by path.
        """

    def tidy(self) -> None:
        """Removes what is left of unfinished files. Called when all are in place, before the marker is written."""

    def disown(self) -> None:
        """Forgets the note of what is ours: from now on the marker says it."""
