"""The download: a few connections, each taking the next part of the next file, and the checksum behind them.

Memory is one buffer a connection, whatever the size of file or part. A file is hashed in order, from what was
written to disk, by whichever connection has just finished a part, as far as the front is complete. So the end
of a large file needs no second pass.
"""

from __future__ import annotations

import threading
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin

from kaigen_downloader.digest import Digest
from kaigen_downloader.errors import Corrupt, Failure, Stopped, Transient
from kaigen_downloader.folder import Folder
from kaigen_downloader.net import Answer, Net, origin
from kaigen_downloader.partial import Partial
from kaigen_downloader.progress import Meter
from kaigen_downloader.remote import RemoteFile
from kaigen_downloader.retry import Retry
from kaigen_downloader.text import say

BUFFER = 1 << 20
FETCHES_OF_A_BAD_FILE = 3
_REDIRECTS = {301, 302, 303, 307, 308}


class _RangesIgnored(Exception):
    """The server sends the whole file whatever part is asked for."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part that one connection fetches: its number, first byte, and the one after its last."""

    index: int
    start: int
    end: int


class _File:
    """One file under way. `lock` guards the bookkeeping, `hashing` the checksum, `resolving` the URL."""

    def __init__(self, folder: Folder, remote: RemoteFile, part_size: int) -> None:
        self.remote = remote
        self.home = origin(remote.url)
        self.partial = Partial(folder, remote, part_size)
        self.lock = threading.Lock()
        self.hashing = threading.Lock()
        self.resolving = threading.Lock()
        self.signed_url: str | None = None
        self.direct = False
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
        """The next part for one connection, which must `leave` the file when done with it."""
        with self.lock:
            if self._whole or not self._todo:
                return None
            self._users += 1
            index = self._todo.popleft()
            return _Part(index, *self.partial.bounds(index))

    def leave(self) -> int:
        """Ends a connection's work on its part.

        Returns:
            Bytes thrown away, because the file now has to be fetched as a whole.
        """
        with self.lock:
            self._users -= 1
            if not self._whole or self._users:
                return 0
        # Nobody else can come in now: `claim` gives nothing out while `_whole` stands.
        with self.hashing, self.lock:
            self._whole = False
            lost = sum(end - start for start, end in map(self.partial.bounds, self.partial.complete_parts()))
            self.partial.restart(max(1, self.remote.size))
            self._rewind()
            return lost

    def fetch_whole(self) -> None:
        """Gives out no more parts; when the last one has left, the file begins anew as a single part."""
        with self.lock:
            self._whole = True

    def hashable(self) -> bool:
        """Whether the checksum can go on, or the file can be settled."""
        with self.lock:
            if self.frontier < len(self.partial.done):
                return self.partial.done[self.frontier] is not None
            return not self.settled and not self._users

    def complete(self, part: _Part, crc: int) -> None:
        """Records a part that is wholly written."""
        with self.lock:
            self.partial.complete(part.index, crc)

    def damaged(self, index: int) -> None:
        """Puts a part back among those to fetch."""
        with self.lock:
            self.partial.forget(index)
            self._todo.append(index)

    def restart(self) -> None:
        """Begins anew. The caller holds `hashing` and no part is out."""
        with self.lock:
            self.fetches += 1
            self.signed_url = None
            self.partial.restart(self.partial.part_size)
            self._rewind()


class Transfer:
    """Fetches a list of files into a folder."""

    def __init__(
        self,
        folder: Folder,
        files: Sequence[RemoteFile],
        net: Net,
        meter: Meter,
        *,
        connections: int,
        part_size: int,
        retry: Retry,
        refusal: Callable[[str, int, str, str], Failure],
    ) -> None:
        """Prepares.

        Args:
            folder: where to.
            files: what to fetch, in this order.
            net: the client.
            meter: gets every byte that arrives.
            connections: threads, each with one connection to the server of the bytes.
            part_size: bytes asked for at once.
            retry: for failures that pass; its `stop` is set when the work ends, by itself or by a failure.
            refusal: makes the failure for a path, and the status, error code and message of its server.
        """
        self._folder = folder
        self._net = net
        self._meter = meter
        self._connections = connections
        self._part_size = part_size
        self._retry = retry
        self._stop = retry.stop
        self._refusal = refusal
        self._waiting = deque(files)
        self._active: list[_File] = []
        self._change = threading.Condition()
        self._running = 0
        self._failure: BaseException | None = None
        self._sha256: dict[str, str] = {}

    def run(self) -> dict[str, str]:
        """Fetches all.

        Returns:
            sha256 of each file by path.

        Raises:
            Failure: the first one that any connection met. What is complete stays for the next run.
        """
        threads = [
            threading.Thread(target=self._work, name=f"connection-{number}", daemon=True)
            for number in range(self._connections)
        ]
        self._running = len(threads)
        try:
            for thread in threads:
                thread.start()
            with self._change:
                while self._running and self._failure is None:
                    self._change.wait(self._meter.wait() or 0.01)
                    self._meter.line()
        finally:
            self._stop.set()
            self._net.abort()
        for thread in threads:
            # A thread may still sit in a name look-up or a connect; the process does not wait for those.
            thread.join(5.0)
        if not any(thread.is_alive() for thread in threads):
            for file in self._active:
                file.partial.close()
        if self._failure is not None:
            raise self._failure
        return self._sha256

    def _work(self) -> None:
        buffer = memoryview(bytearray(BUFFER))
        try:
            while (task := self._next()) is not None:
                file, part = task
                if part is not None:
                    try:
                        self._fetch(file, part, buffer)
                    finally:
                        lost = file.leave()
                    if lost:
                        self._meter.lose(lost)
                    self._notify()
                self._advance(file, buffer)
        except Stopped:
            pass
        except BaseException as error:
            with self._change:
                self._failure = self._failure or error
            self._stop.set()
        finally:
            with self._change:
                self._running -= 1
                self._change.notify_all()

    def _next(self) -> tuple[_File, _Part | None] | None:
        """The next part to fetch; a file without a part is one whose checksum can go on; None at the end."""
        with self._change:
            while not self._stop.is_set():
                for file in self._active:
                    part = file.claim()
                    if part is not None:
                        return file, part
                if self._waiting:
                    file = _File(self._folder, self._waiting.popleft(), self._part_size)
                    self._active.append(file)
                    if file.hashable():
                        return file, None
                    continue
                if not self._active:
                    return None
                # A file under way may yet have to be fetched again.
                self._change.wait(1.0)
        return None

    def _fetch(self, file: _File, part: _Part, buffer: memoryview) -> None:
        start, end = part.start, part.end
        offset, crc = start, 0
        attempts = self._retry.attempts(file.remote.path)
        while offset < end:
            before = offset
            try:
                with self._open(file, offset, end) as answer:
                    while offset < end:
                        count = answer.readinto(buffer[: end - offset])
                        if not count:
                            raise Transient("the connection was cut")
                        file.partial.write(buffer[:count], offset)
                        crc = zlib.crc32(buffer[:count], crc)
                        offset += count
                        self._meter.add(count)
            except _RangesIgnored:
                self._meter.lose(offset - start)
                if end - start < file.remote.size:
                    file.fetch_whole()
                    return
                offset, crc = 0, 0
                attempts.failed(Transient("the server cannot resume"))
            except Transient as error:
                attempts.failed(error, progress=offset - before >= max(1, min(BUFFER, (end - start) // 4)))
        file.complete(part, crc)

    def _open(self, file: _File, offset: int, end: int) -> Answer:
        """The answer whose body is the file from `offset` on, from the CDN when the Hub sends us there."""
        headers = {"Range": f"bytes={offset}-{end - 1}"} if (offset, end) != (0, file.remote.size) else {}
        if file.direct:
            return self._follow(file, file.remote.url, headers, offset)
        signed = file.signed_url
        if signed is None:
            # One connection asks the Hub, the others use the signed URL it gets: the Hub limits requests.
            with file.resolving:
                signed = file.signed_url
                if signed is None:
                    return self._follow(file, file.remote.url, headers, offset)
        return self._follow(file, signed, headers, offset)

    def _follow(self, file: _File, url: str, headers: dict[str, str], offset: int) -> Answer:
        for _ in range(8):
            answer = self._net.get(url, headers)
            if answer.status not in _REDIRECTS:
                return self._accept(file, url, answer, offset)
            with answer:
                target = urljoin(url, answer.headers.get("Location", ""))
                answer.small_body(1 << 20)
            if url.startswith("https:") and not target.startswith("https:"):
                raise Transient("the server redirects from https to an unprotected address")
            if origin(url) == file.home and origin(target) != file.home:
                file.signed_url = target
            url = target
        raise Transient("too many redirects")

    def _accept(self, file: _File, url: str, answer: Answer, offset: int) -> Answer:
        """The answer, if its body is what was asked for."""
        status, size = answer.status, file.remote.size
        if origin(url) == file.home:
            file.direct = status < 300
        if (
            status < 300
            and not file.remote.provable
            and answer.headers.get("ETag") not in (None, file.remote.version)
        ):
            with answer:
                raise Corrupt(f"{file.remote.path} changed while it was fetched")
        if status == 206:
            got = answer.headers.get("Content-Range", "")
            first, _, total = got.removeprefix("bytes ").partition("/")
            if first.partition("-")[0] == str(offset) and total in (str(size), "*"):
                return answer
            with answer:
                raise self._strange(file, got, total, size)
        if status == 200:
            length = answer.headers.get("Content-Length", str(size))
            if length != str(size):
                with answer:
                    raise self._strange(file, length, length, size)
            if offset == 0 and len(file.partial.done) == 1:
                return answer
            with answer:
                raise _RangesIgnored
        with answer:
            if status == 416:
                total = answer.headers.get("Content-Range", "").rpartition("/")[2]
                raise self._strange(file, "none", total, size)
            if origin(url) == file.home:
                code = answer.headers.get("X-Error-Code", "")
                raise self._refusal(file.remote.path, status, code, answer.headers.get("X-Error-Message", ""))
            file.signed_url = None
            raise Transient(f"the signed URL is not accepted (status {status}), asking for a new one")

    @staticmethod
    def _strange(file: _File, got: str, total: str, size: int) -> Failure:
        if total.isdigit() and int(total) != size:
            return Corrupt(f"{file.remote.path}: the server has {total} bytes, {size} are listed")
        return Transient(f"the server sent another range than asked for ({got!r})")

    def _advance(self, file: _File, buffer: memoryview) -> None:
        """Takes the checksum as far as it goes, and ends the file when that is the end."""
        while file.hashable():
            if not file.hashing.acquire(blocking=False):
                # Whoever holds it looks again after letting go.
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
                crc = zlib.crc32(buffer[:count], crc)
            if self._stop.is_set():
                raise Stopped
            offset += count
        if check and (offset < end or crc != file.partial.done[index]):
            say(f"{file.remote.path}: part {index} of an earlier run is damaged, fetching it again")
            self._meter.lose(end - start)
            file.damaged(index)
            self._notify()
            return
        with file.lock:
            file.digest = digest
            file.frontier = index + 1

    def _settle(self, file: _File) -> None:
        remote = file.remote
        if file.digest.matches():
            file.partial.publish()
            with file.lock:
                file.settled = True
            with self._change:
                self._sha256[remote.path] = file.digest.sha256
                self._active.remove(file)
                self._change.notify_all()
            return
        if file.fetches == FETCHES_OF_A_BAD_FILE:
            file.partial.restart(self._part_size)
            raise Corrupt(f"{remote.path}: wrong checksum, also after fetching it {file.fetches} times")
        say(f"{remote.path}: wrong checksum, fetching it again")
        self._meter.lose(remote.size)
        file.restart()
        self._notify()

    def _notify(self) -> None:
        with self._change:
            self._change.notify_all()
