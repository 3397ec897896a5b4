"""The bytes of one file at its source: ranges of it, the CDN it is redirected to, and trying again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from kaigen_downloader.errors import Corrupt, Failure, Transient
from kaigen_downloader.net import Answer, Net, origin
from kaigen_downloader.progress import Meter
from kaigen_downloader.remote import RemoteFile
from kaigen_downloader.retry import Retry
from kaigen_downloader.text import whole_number

BUFFER = 1 << 20

# Makes the failure for a path, and the status, error code and message of its server.
Refusal = Callable[[str, int, str, str], Failure]


class Readable(Protocol):
    """Bytes that are read in order."""

    def readinto(self, view: memoryview) -> int:
        """Read the next bytes into the view; return 0 at the end."""


# Reads some bytes, the first of which has this offset in the file; says how many it took, 0 at the end.
Take = Callable[[Readable, int], int]


class Bytes(Protocol):
    """The bytes of one file at its source. Threads may fetch parts of it together."""

    @property
    def remote(self) -> RemoteFile:
        """The file."""

    def forget_url(self) -> None:
        """Discard the signed URL, since its bytes were wrong."""

    def fetch(self, start: int, end: int, take: Take) -> None:
        """Have all bytes of a range taken, in order; see `Served`."""


class RangesIgnored(Exception):
    """The server sends the whole file whatever part is asked for."""


class Served:
    """One file at its source. Threads may fetch parts of it together."""

    def __init__(self, remote: RemoteFile, net: Net, meter: Meter, retry: Retry, refusal: Refusal) -> None:
        """Initialize.

        Args:
            remote: the file.
            net: the client.
            meter: gets every byte that arrives.
            retry: for failures that pass.
            refusal: for those that do not.
        """
        self.remote = remote
        self._home = origin(remote.url)
        self._net = net
        self._meter = meter
        self._retry = retry
        self._refusal = refusal
        self._resolving = threading.Lock()
        self._signed_url: str | None = None
        self._direct = False

    def forget_url(self) -> None:
        """Discard the signed URL, since its bytes were wrong; the next request asks the Hub again."""
        self._signed_url = None

    def fetch(self, start: int, end: int, take: Take) -> None:
        """Has all bytes of a range taken, in order.

        Args:
            start: the first byte.
            end: the one after the last.
            take: called until it has taken all. It is called with `start` once more when what it took is void.

        Raises:
            RangesIgnored: the server cannot send a part.
            Failure: the bytes cannot be had.
        """
        offset, size = start, self.remote.size
        furthest = start
        attempts = self._retry.attempts(self.remote.path)
        while offset < end:
            try:
                with self._open(offset, end) as answer:
                    while offset < end:
                        count = take(answer, offset)
                        if not count:
                            raise Transient("the connection was cut")
                        offset += count
                        self._meter.add(count)
            except RangesIgnored:
                self._meter.lose(offset - start)
                if end - start < size:
                    raise
                offset = 0
                attempts.failed(Transient("the server cannot resume"))
            except Transient as error:
                # Bytes that were there before are not progress: a server that cannot resume sends them again and again.
                progress = offset - furthest >= max(1, min(BUFFER, (end - start) // 4))
                furthest = max(furthest, offset)
                attempts.failed(error, progress=progress)

    def _open(self, offset: int, end: int) -> Answer:
        """The answer whose body is the file from `offset` on, from the CDN when the Hub sends us there."""
        headers = {"Range": f"bytes={offset}-{end - 1}"} if (offset, end) != (0, self.remote.size) else {}
        if self._direct:
            return self._follow(self.remote.url, headers, offset)
        signed = self._signed_url
        if signed is None:
            # One connection asks the Hub, the others use the signed URL it gets: the Hub limits requests.
            with self._resolving:
                signed = self._signed_url
                if signed is None:
                    return self._follow(self.remote.url, headers, offset)
        return self._follow(signed, headers, offset)

    def _follow(self, url: str, headers: dict[str, str], offset: int) -> Answer:
        where, answer = self._net.follow(url, headers, self._note_signed)
        return self._accept(where, answer, offset, whole=not headers)

    def _note_signed(self, url: str, target: str) -> None:
        if origin(url) == self._home and origin(target) != self._home:
            self._signed_url = target

    def _accept(self, url: str, answer: Answer, offset: int, *, whole: bool) -> Answer:
        """The answer, if its body is what was asked for."""
        remote, status, size = self.remote, answer.status, self.remote.size
        if origin(url) == self._home:
            self._direct = status < 300
        if status < 300 and not remote.provable and answer.headers.get("ETag") not in (None, remote.version):
            with answer:
                raise Corrupt(f"{remote.path} changed while it was fetched")
        if status == 206:
            got = answer.headers.get("Content-Range", "")
            first, _, total = got.removeprefix("bytes ").partition("/")
            if first.partition("-")[0] == str(offset) and total in (str(size), "*"):
                return answer
            with answer:
                raise self._strange(got, total)
        if status == 200:
            length = answer.headers.get("Content-Length", str(size))
            if length != str(size):
                with answer:
                    raise self._strange(length, length)
            if whole:
                return answer
            with answer:
                raise RangesIgnored
        with answer:
            if status == 416:
                raise self._strange("none", answer.headers.get("Content-Range", "").rpartition("/")[2])
            if origin(url) == self._home:
                code = answer.headers.get("X-Error-Code", "")
                raise self._refusal(remote.path, status, code, answer.headers.get("X-Error-Message", ""))
            self._signed_url = None
            raise Transient(f"the signed URL is not accepted (status {status}), asking for a new one")

    def _strange(self, got: str, total: str) -> Failure:
        size = self.remote.size
        number = whole_number(total)
        if number is not None and number != size:
            return Corrupt(f"{self.remote.path}: the server has {total} bytes, {size} are listed")
        return Transient(f"the server sent another range than asked for ({got!r})")
