"""Files with their own URLs, each with an optional checksum."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from kaigen_downloader.errors import BadInput, Failure, Refused, Transient, Unavailable
from kaigen_downloader.net import Answer, Net, origin
from kaigen_downloader.ranges import Served
from kaigen_downloader.remote import RemoteFile, Snapshot, check_names
from kaigen_downloader.retry import Retry
from kaigen_downloader.store import Work
from kaigen_downloader.text import plural, whole_number


@dataclass(frozen=True, slots=True)
class WebFile:
    """A file to fetch.

    Attributes:
        path: where it goes, relative to the folder.
        url: http or https.
        sha256: in hex, or None when it is not known.
    """

    path: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Web:
    """Files of any servers. No token is sent."""

    files: tuple[WebFile, ...]

    @property
    def endpoint(self) -> str:
        """Return an empty URL: no origin gets a token."""
        return self.files[0].url

    @property
    def name(self) -> str:
        """Return the file's name, or the number of files."""
        return self.files[0].path if len(self.files) == 1 else plural(len(self.files), "address")

    @property
    def facts(self) -> Mapping[str, str]:
        """Return the source for the marker, without URLs, which may be signed."""
        return {"type": "http"}

    def snapshot(self, net: Net, retry: Retry, token: bool) -> Snapshot:
        """Ask each server for the size of its file.

        Raises:
            BadInput: not a URL that can be fetched, or names that could do harm.
            Refused: a server does not give the file.
            Unavailable: a server cannot be reached, or does not report the size of the file.
        """
        check_names([file.path for file in self.files])
        for file in self.files:
            if urlsplit(file.url).username is not None:
                raise BadInput(f"{file.path}: the URL contains a user name; use a signed URL instead")
            origin(file.url)
        found = tuple(sorted((_probe(file, net, retry) for file in self.files), key=lambda file: file.path))
        listing = "\n".join(f"{file.oid} {file.path}" for file in found)
        return Snapshot(hashlib.sha256(listing.encode()).hexdigest()[:40], found)

    def selection(self, paths: Collection[str]) -> set[str]:
        """Return the files that have a URL: other files are not asked for."""
        return {file.path for file in self.files}.intersection(paths)

    def sign(self, url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return no headers: no token is sent."""
        return {}

    def served(self, remote: RemoteFile, work: Work) -> Served:
        """Return the bytes of a file."""
        return Served(remote, work.net, work.meter, work.retry, work.refusal)

    def refusal(self, path: str, status: int, code: str, message: str, token: bool) -> Failure:
        """Return the permanent failure for a status."""
        host = next(urlsplit(file.url).hostname for file in self.files if file.path == path)
        return Refused(f"{path}: {host} answers {status}")


def _probe(file: WebFile, net: Net, retry: Retry) -> RemoteFile:
    """Return the server's information about a file, from a request for its first byte."""
    attempts = retry.attempts(f"asking for {file.path}")
    while True:
        try:
            with net.follow(file.url, {"Range": "bytes=0-0"})[1] as answer:
                return _described(file, answer)
        except Transient as error:
            attempts.failed(error)


def _described(file: WebFile, answer: Answer) -> RemoteFile:
    host = urlsplit(file.url).hostname
    if answer.status not in (200, 206, 416):
        raise Refused(f"{file.path}: {host} answers {answer.status}")
    length = answer.headers.get("Content-Length") if answer.status == 200 else None
    if length is None:
        length = answer.headers.get("Content-Range", "").rpartition("/")[2]
    size = whole_number(length)
    if size is None:
        raise Unavailable(f"{file.path}: {host} does not report the size of the file")
    # Without a version of the content, the files of an interrupted run cannot be reused.
    version = answer.headers.get("ETag") or uuid.uuid4().hex
    return RemoteFile(file.path, size, file.sha256, None, file.url, version)
