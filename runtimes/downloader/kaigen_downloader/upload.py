"""The download into a bucket: each connection copies one part from the source to the server, in memory.

A part is fetched into its connection's own buffer, hashed after all parts before it, and uploaded at the same time.
The connection takes no other part before both are done, so memory is one part per connection for any size of
file. An object becomes visible only after its digest is verified: until then it is a multipart upload, which is
aborted if the digest is wrong.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kaigen_downloader.crew import Crew
from kaigen_downloader.digest import FETCHES_OF_A_BAD_FILE, Digest
from kaigen_downloader.errors import Corrupt, Stopped, Unavailable
from kaigen_downloader.ranges import BUFFER, Bytes, RangesIgnored, Readable
from kaigen_downloader.remote import RemoteFile
from kaigen_downloader.store import Work
from kaigen_downloader.text import say

LEAST_PART = 5 << 20
MOST_PARTS = 10_000


def part_size(size: int, asked: int) -> int:
    """Return the bytes of each part except the last one, within the limits of S3."""
    return max(asked, LEAST_PART, -(-size // MOST_PARTS))


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the server says of a part.

    Attributes:
        tag: its ETag.
        crc32: its checksum, if the server verified one; else empty.
    """

    tag: str
    crc32: str = ""


class Target(Protocol):
    """The destination of the bytes. All methods raise a Failure."""

    def put(self, file: RemoteFile, content: memoryview, digest: Digest) -> None:
        """Create a small object, in one step."""

    def begin(self, file: RemoteFile) -> str:
        """Start a multipart upload and return its id."""

    def part(self, file: RemoteFile, upload: str, number: int, content: memoryview) -> Receipt:
        """Upload a part, numbered from 1."""

    def complete(self, file: RemoteFile, upload: str, parts: Sequence[Receipt], digest: Digest) -> bool:
        """Complete the upload. Returns False when the outcome is unknown."""

    def abort(self, file: RemoteFile, upload: str) -> None:
        """Abort an upload. Never fails: the next run finds what is left behind."""


class _File:
    """One file in progress. The crew's `change` guards it, except the digest, which one thread at a time uses."""

    def __init__(self, served: Bytes, asked: int) -> None:
        self.served = served
        self.remote = served.remote
        self.part = part_size(self.remote.size, asked)
        self.count = max(1, -(-self.remote.size // self.part))
        self.starting = threading.Lock()
        self.upload: str | None = None
        self.fetches = 1
        self.whole = False
        self.users = 0
        self.renew()

    def renew(self) -> None:
        """Start with nothing fetched."""
        self.digest = Digest(self.remote)
        self.spoilt = False
        self.next = 0
        self.frontier = 0
        self.hashing = False
        self.ready: dict[int, memoryview] = {}
        self.receipts: dict[int, Receipt] = {}

    def bounds(self, index: int) -> tuple[int, int]:
        """Return the first byte of a part and the one after its last."""
        return index * self.part, min((index + 1) * self.part, self.remote.size)

    @property
    def idle(self) -> bool:
        """Return whether no thread works on it and no part is left."""
        return not self.users and (self.spoilt or self.next == self.count)


class Upload:
    """Fetches a list of files into a bucket."""

    def __init__(self, target: Target, files: Sequence[RemoteFile], work: Work) -> None:
        """Initialize.

        Args:
            target: where to.
            files: what to fetch, in this order.
            work: the rest.
        """
        self._target = target
        self._order = work
        self._meter = work.meter
        self._stop = work.retry.stop
        self._crew = Crew(work.net, work.meter, work.retry.stop)
        self._waiting = deque(files)
        self._active: list[_File] = []
        self._sha256: dict[str, str] = {}

    def run(self) -> Mapping[str, str]:
        """Fetch all files.

        Returns:
            sha256 of each file by path.

        Raises:
            Failure: the first one that any connection met. Complete objects stay, begun ones are aborted.
        """
        try:
            self._crew.run(self._order.connections, self._work)
        finally:
            # A thread that still waits for an answer will find its upload gone.
            for file in list(self._active):
                self._forget_upload(file)
        return self._sha256

    def _forget_upload(self, file: _File) -> None:
        if file.upload is not None:
            self._target.abort(file.remote, file.upload)
            file.upload = None

    def _work(self) -> None:
        buffer = view = memoryview(b"")
        while (task := self._next()) is not None:
            file, index = task
            start, end = file.bounds(index)
            if len(buffer) < end - start:
                # The old one goes first, so that there are never two.
                buffer = view = memoryview(b"")
                buffer = memoryview(bytearray(end - start))
            view = buffer[: end - start]
            if file.whole:
                self._stream(file, view)
            else:
                self._carry(file, index, view)
            with self._crew.change:
                file.users -= 1
                last = file.idle
                self._crew.change.notify_all()
            if last:
                self._end(file, view)

    def _next(self) -> tuple[_File, int] | None:
        """Return the next part to copy, or None at the end."""
        with self._crew.change:
            while not self._stop.is_set():
                for file in self._active:
                    if not file.spoilt and file.next < file.count:
                        index = file.next
                        # A file that comes as a whole is one connection's.
                        file.next = file.count if file.whole else index + 1
                        file.users += 1
                        return file, index
                if self._waiting:
                    remote = self._waiting.popleft()
                    self._active.append(_File(self._order.serve(remote), self._order.part_size))
                elif not self._active:
                    return None
                else:
                    # A file under way may yet have to be fetched again.
                    self._crew.change.wait(1.0)
        return None

    def _carry(self, file: _File, index: int, view: memoryview) -> None:
        """Fetch, hash and upload one part."""
        start, end = file.bounds(index)

        def take(answer: Readable, offset: int) -> int:
            return answer.readinto(view[offset - start :][:BUFFER])

        try:
            file.served.fetch(start, end, take)
        except RangesIgnored:
            with self._crew.change:
                file.spoilt = True
                self._crew.change.notify_all()
            return
        with self._crew.change:
            file.ready[index] = view
        self._hash(file)
        if file.count > 1:
            self._upload(file, index, view)
        # The bytes stay until their turn to be hashed has come: connections before this one see to that.
        with self._crew.change:
            while file.frontier <= index and not file.spoilt:
                if self._stop.is_set():
                    raise Stopped
                self._crew.change.wait(1.0)

    def _stream(self, file: _File, view: memoryview) -> None:
        """Copy all parts of a file over one connection, for a server that sends only whole files."""

        def take(answer: Readable, offset: int) -> int:
            if offset == 0:
                file.digest = Digest(file.remote)
            index, at = divmod(offset, file.part)
            room = view[at : file.bounds(index)[1] - index * file.part]
            count = answer.readinto(room[:BUFFER])
            if count == len(room):
                part = view[: at + count]
                file.digest.update(part)
                self._upload(file, index, part)
            return count

        file.served.fetch(0, file.remote.size, take)

    def _hash(self, file: _File) -> None:
        """Advance the checksum as far as possible."""
        while True:
            with self._crew.change:
                if file.hashing or file.frontier not in file.ready:
                    return
                file.hashing = True
                view = file.ready.pop(file.frontier)
            file.digest.update(view)
            with self._crew.change:
                file.hashing = False
                file.frontier += 1
                self._crew.change.notify_all()

    def _upload(self, file: _File, index: int, view: memoryview) -> None:
        with file.starting:
            if file.upload is None:
                file.upload = self._target.begin(file.remote)
            upload = file.upload
        receipt = self._target.part(file.remote, upload, index + 1, view)
        with self._crew.change:
            file.receipts[index] = receipt

    def _end(self, file: _File, view: memoryview) -> None:
        """Complete a file when its last connection is done: publish it, or start again."""
        remote = file.remote
        if file.spoilt:
            self._meter.lose(len(file.receipts) * file.part)
            self._forget_upload(file)
            self._again(file, whole=True)
        elif not file.digest.matches():
            self._forget_upload(file)
            if file.fetches == FETCHES_OF_A_BAD_FILE:
                raise Corrupt(f"{remote.path}: wrong checksum, also after fetching it {file.fetches} times")
            say(f"{remote.path}: wrong checksum, fetching it again")
            self._meter.lose(remote.size)
            file.fetches += 1
            file.served.forget_url()
            self._again(file, whole=file.whole)
        elif self._publish(file, view):
            with self._crew.change:
                self._sha256[remote.path] = file.digest.sha256
                self._active.remove(file)
                self._crew.change.notify_all()
            self._meter.complete_file()
        else:
            if file.fetches == FETCHES_OF_A_BAD_FILE:
                raise Unavailable(
                    f"{remote.path}: the upload disappeared before it was completed, {file.fetches} times"
                )
            say(f"{remote.path}: the upload disappeared before it was completed, fetching it again")
            self._meter.lose(remote.size)
            file.fetches += 1
            self._again(file, whole=file.whole)

    def _publish(self, file: _File, view: memoryview) -> bool:
        if file.upload is None:
            self._target.put(file.remote, view, file.digest)
            return True
        parts = [file.receipts[index] for index in range(file.count)]
        if self._target.complete(file.remote, file.upload, parts, file.digest):
            file.upload = None
            return True
        self._forget_upload(file)
        return False

    def _again(self, file: _File, *, whole: bool) -> None:
        with self._crew.change:
            file.whole = whole
            file.renew()
            self._crew.change.notify_all()
