"""The download: a few connections, each fetching the next part of the next file, followed by the checksum.

Memory is one buffer a connection, whatever the size of file or part. A file is hashed in order, from what was
written to disk, by whichever connection has just finished a part, as far as the front is complete. So the end
of a large file needs no second pass.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zlib_ng import zlib_ng

from kaigen_downloader.crew import Crew
from kaigen_downloader.digest import FETCHES_OF_A_BAD_FILE, Digest
from kaigen_downloader.errors import Corrupt, Stopped
from kaigen_downloader.folder import Folder
from kaigen_downloader.partial import Partial
from kaigen_downloader.progress import Meter
from kaigen_downloader.ranges import BUFFER, Bytes, RangesIgnored, Readable
from kaigen_downloader.remote import RemoteFile
from kaigen_downloader.retry import Retry
from kaigen_downloader.text import say


@dataclass(frozen=True, slots=True)
class _Part:
    """A part that one connection fetches: its number, first byte, and the byte after its last."""

    index: int
    start: int
    end: int


class _File:
    """One file in progress. `lock` guards the bookkeeping, `hashing` the checksum."""

    def __init__(self, folder: Folder, served: Bytes, part_size: int) -> None:
        remote = served.remote
        self.remote = remote
        self.served = served
        self.partial = Partial(folder, remote, part_size)
        self.lock = threading.Lock()
        self.hashing = threading.Lock()
        self.settled = False
        self.fetches = 1
        self._users = 0
        self._whole = False
        self._rewind()

    def _rewind(self) -> None:
        self.digest = Digest(self.remote)
        self.frontier = 0
        self._todo = deque(index for index, crc in enumerate(self.partial.done) if crc is None)

    def claim(self) -> _Part | None:
        """Return the next part for one connection, which must `leave` the file when it is done."""
        with self.lock:
            if self._whole or not self._todo:
                return None
            self._users += 1
            index = self._todo.popleft()
            return _Part(index, *self.partial.bounds(index))

    def leave(self) -> int:
        """End a connection's work on its part.

        Returns:
            Bytes thrown away, because the file now has to be fetched as a whole.
        """
        with self.lock:
            self._users -= 1
            if not self._whole or self._users:
                return 0
        # No other connection can start now: `claim` returns nothing while `_whole` is set.
        with self.hashing, self.lock:
            self._whole = False
            lost = sum(end - start for start, end in map(self.partial.bounds, self.partial.complete_parts()))
            self.partial.restart(max(1, self.remote.size))
            self._rewind()
            return lost

    def fetch_whole(self) -> None:
        """Stop handing out parts; when the last connection has left, fetch the file again as a single part."""
        with self.lock:
            self._whole = True

    def hashable(self) -> bool:
        """Return whether the checksum can continue, or the file can be completed."""
        with self.lock:
            if self.frontier < len(self.partial.done):
                return self.partial.done[self.frontier] is not None
            return not self.settled and not self._users

    def complete(self, part: _Part, crc: int) -> None:
        """Record a complete part."""
        with self.lock:
            self.partial.complete(part.index, crc)

    def damaged(self, index: int) -> None:
        """Return a part to the parts to fetch."""
        with self.lock:
            self.partial.forget(index)
            self._todo.append(index)

    def restart(self) -> None:
        """Start again. The caller has locked `hashing`, and no connection has a part."""
        with self.lock:
            self.fetches += 1
            self.served.forget_url()
            self.partial.restart(self.partial.part_size)
            self._rewind()


class Transfer:
    """Fetches a list of files into a folder."""

    def __init__(
        self,
        folder: Folder,
        files: Sequence[RemoteFile],
        serve: Callable[[RemoteFile], Bytes],
        crew: Crew,
        meter: Meter,
        *,
        connections: int,
        part_size: int,
        retry: Retry,
    ) -> None:
        """Initialize.

        Args:
            folder: where to.
            files: what to fetch, in this order.
            serve: each of them at its source.
            crew: the threads.
            meter: counts bytes that are fetched in vain.
            connections: threads, each with one connection to the server of the bytes.
            part_size: bytes asked for at once.
            retry: for failures that pass; its `stop` is set when the work ends, normally or by a failure.
        """
        self._folder = folder
        self._serve = serve
        self._crew = crew
        self._meter = meter
        self._connections = connections
        self._part_size = part_size
        self._stop = retry.stop
        self._waiting = deque(files)
        self._active: list[_File] = []
        self._sha256: dict[str, str] = {}

    def run(self) -> dict[str, str]:
        """Fetch all files.

        Returns:
            sha256 of each file by path.

        Raises:
            Failure: the first one that any connection met. What is complete stays for the next run.
        """
        self._crew.run(self._connections, self._work, self._close)
        return self._sha256

    def _close(self) -> None:
        for file in self._active:
            file.partial.close()

    def _work(self) -> None:
        buffer = memoryview(bytearray(BUFFER))
        while (task := self._next()) is not None:
            file, part = task
            if part is not None:
                try:
                    self._fetch(file, part, buffer)
                finally:
                    lost = file.leave()
                if lost:
                    self._meter.lose(lost)
                self._crew.notify()
            self._advance(file, buffer)

    def _next(self) -> tuple[_File, _Part | None] | None:
        """Return the next part to fetch, a file without a part if its checksum can continue, or None at the end."""
        with self._crew.change:
            while not self._stop.is_set():
                for file in self._active:
                    part = file.claim()
                    if part is not None:
                        return file, part
                if self._waiting:
                    file = _File(self._folder, self._serve(self._waiting.popleft()), self._part_size)
                    self._active.append(file)
                    if file.hashable():
                        return file, None
                    continue
                if not self._active:
                    return None
                # A file under way may yet have to be fetched again.
                self._crew.change.wait(1.0)
        return None

    def _fetch(self, file: _File, part: _Part, buffer: memoryview) -> None:
        crc = 0

        def take(answer: Readable, offset: int) -> int:
            nonlocal crc
            count = answer.readinto(buffer[: part.end - offset])
            file.partial.write(buffer[:count], offset)
            crc = zlib_ng.crc32(buffer[:count], 0 if offset == part.start else crc)
            return count

        try:
            file.served.fetch(part.start, part.end, take)
        except RangesIgnored:
            file.fetch_whole()
        else:
            file.complete(part, crc)

    def _advance(self, file: _File, buffer: memoryview) -> None:
        """Advance the checksum as far as possible, and complete the file at its end."""
        while file.hashable():
            if not file.hashing.acquire(blocking=False):
                # The thread that has the lock checks again after releasing it.
                return
            try:
                while file.hashable():
                    if file.frontier == len(file.partial.done):
                        self._settle(file)
                    else:
                        self._hash_part(file, buffer)
            finally:
                file.hashing.release()

    def _hash_part(self, file: _File, buffer: memoryview) -> None:
        index = file.frontier
        start, end = file.partial.bounds(index)
        check = index in file.partial.resumed
        digest = file.digest.copy() if check else file.digest
        offset, crc = start, 0
        while offset < end:
            count = file.partial.read(buffer[: end - offset], offset)
            if not count:
                break
            digest.update(buffer[:count])
            if check:
                crc = zlib_ng.crc32(buffer[:count], crc)
            if self._stop.is_set():
                raise Stopped
            offset += count
        if check and (offset < end or crc != file.partial.done[index]):
            say(f"{file.remote.path}: part {index} of an earlier run is damaged, fetching it again")
            self._meter.lose(end - start)
            file.damaged(index)
            self._crew.notify()
            return
        file.partial.start_saving(index)
        with file.lock:
            file.digest = digest
            file.frontier = index + 1

    def _settle(self, file: _File) -> None:
        remote = file.remote
        if file.digest.matches():
            file.partial.publish()
            with file.lock:
                file.settled = True
            with self._crew.change:
                self._sha256[remote.path] = file.digest.sha256
                self._active.remove(file)
                self._crew.change.notify_all()
            self._meter.complete_file()
            return
        if file.fetches == FETCHES_OF_A_BAD_FILE:
            file.partial.restart(self._part_size)
            raise Corrupt(f"{remote.path}: wrong checksum, also after fetching it {file.fetches} times")
        say(f"{remote.path}: wrong checksum, fetching it again")
        self._meter.lose(remote.size)
        file.restart()
        self._crew.notify()
