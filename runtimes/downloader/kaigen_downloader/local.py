"""Files of a folder on this machine, as a source: for what was converted or computed, and is to be stored."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kaigen_downloader.errors import BadInput, Failure, Transient
from kaigen_downloader.folder import LOCK, STATE, Folder, explain
from kaigen_downloader.globs import chosen
from kaigen_downloader.net import Net
from kaigen_downloader.progress import Display, Meter
from kaigen_downloader.ranges import BUFFER, Take
from kaigen_downloader.remote import RemoteFile, Snapshot, check_names
from kaigen_downloader.retry import Retry
from kaigen_downloader.store import Work

_LOST = "lost+found"
"""A folder at the top of a volume with ext4, which only root may read."""


@dataclass(frozen=True, slots=True)
class Local:
    """The files of a folder.

    Attributes:
        folder: the open folder.
        include: globs over the whole path, `*` crossing slashes; none means all files.
        exclude: globs of files left out.
        progress: how the progress of reading the files is shown.
    """

    folder: Folder
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    progress: Display = field(default_factory=Display)

    @property
    def endpoint(self) -> str:
        """Return an empty URL: there is no server."""
        return ""

    @property
    def name(self) -> str:
        """Return the folder."""
        return self.folder.path

    @property
    def facts(self) -> Mapping[str, str]:
        """Return the source for the marker, without the path, which means nothing elsewhere."""
        return {"type": "local"}

    def selection(self, paths: Collection[str]) -> set[str]:
        """Return the files that the globs select."""
        return {path for path in paths if chosen(path, self.include, self.exclude)}

    def sign(self, url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return no headers."""
        return {}

    def snapshot(self, net: Net, retry: Retry, token: bool) -> Snapshot:
        """List the files and compute their checksums.

        Raises:
            BadInput: the folder has no files, a link or another object that is not a file, or what cannot be read.
        """
        sizes = {}
        for path, found in sorted(self.folder.files(self._failed)):
            if path.split("/")[0] == STATE or f"/{path}".endswith(f"/{LOCK}"):
                continue
            if stat.S_ISLNK(found.st_mode) and self._is_wanted(path) and self.folder.is_folder(path):
                raise BadInput(
                    f"{self.folder.path}/{path}: a link to a folder: put the folder in its place, or exclude it with "
                    f"--exclude={path}"
                )
            if not chosen(path, self.include, self.exclude):
                continue
            if not stat.S_ISREG(found.st_mode):
                raise BadInput(f"{self.folder.path}/{path}: not a regular file")
            sizes[path] = found.st_size
        if not sizes:
            raise BadInput(f"{self.folder.path} has no files to store")
        check_names(list(sizes))
        meter = Meter("check", self.progress, sum(sizes.values()), len(sizes))
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            sums = list(pool.map(lambda path: self._sha256(path, meter), sizes))
        meter.finish()
        files = tuple(
            RemoteFile(path, size, sha256, None, "") for (path, size), sha256 in zip(sizes.items(), sums, strict=True)
        )
        listing = "\n".join(f"{file.oid} {file.path}" for file in files)
        return Snapshot(hashlib.sha256(listing.encode()).hexdigest()[:40], files)

    def _is_wanted(self, folder: str) -> bool:
        """Return whether files of a folder may be stored: it is not excluded."""
        return all(chosen(path, (), self.exclude) for path in (folder, f"{folder}/"))

    def _failed(self, path: str, error: OSError | BadInput) -> None:
        if path.split("/")[0] not in (STATE, _LOST) and self._is_wanted(path):
            raise error if isinstance(error, BadInput) else self._unreadable(path, error)

    def _unreadable(self, path: str, error: OSError) -> Failure:
        """Return the failure for a file or a folder that cannot be read."""
        if not isinstance(error, PermissionError):
            return explain(error, f"{self.folder.path}/{path}")
        return BadInput(
            f"{self.folder.path}/{path}: {error.strerror}: uid {os.geteuid()} may not read it: change its mode, or "
            f"exclude it with --exclude={path}"
        )

    def _sha256(self, path: str, meter: Meter) -> str:
        digest, buffer = hashlib.sha256(), memoryview(bytearray(BUFFER))
        try:
            with os.fdopen(self.folder.open(path, os.O_RDONLY), "rb", buffering=0) as content:
                while count := content.readinto(buffer):
                    digest.update(buffer[:count])
                    meter.add(count)
                    meter.update()
        except OSError as error:
            raise self._unreadable(path, error) from error
        meter.complete_file()
        return digest.hexdigest()

    def served(self, remote: RemoteFile, work: Work) -> LocalFile:
        """Return the bytes of a file."""
        return LocalFile(self.folder, remote, work)

    def refusal(self, path: str, status: int, code: str, message: str, token: bool) -> Failure:
        """Return what cannot happen without a server."""
        return Failure(f"{path}: status {status}")


class _Reader:
    """A part of a file, read in order."""

    def __init__(self, fd: int, offset: int) -> None:
        self._fd = fd
        self._at = offset

    def readinto(self, view: memoryview) -> int:
        """Read the next bytes; return 0 at the end of the file."""
        count = os.preadv(self._fd, [view], self._at)
        self._at += count
        return count


class LocalFile:
    """One file of the folder. See `Served` for the methods."""

    def __init__(self, folder: Folder, remote: RemoteFile, work: Work) -> None:
        """Initialize."""
        self.remote = remote
        self._folder = folder
        self._work = work

    def forget_url(self) -> None:
        """Do nothing: there is no URL."""

    def fetch(self, start: int, end: int, take: Take) -> None:
        """Have all bytes of a range taken, in order.

        Raises:
            Failure: the file became shorter, or cannot be read.
        """
        attempts = self._work.retry.attempts(self.remote.path)
        try:
            fd = self._folder.open(self.remote.path, os.O_RDONLY)
        except OSError as error:
            raise explain(error, f"{self._folder.path}/{self.remote.path}") from error
        with os.fdopen(fd, "rb"):
            offset, reader = start, _Reader(fd, start)
            while offset < end:
                if self._work.retry.stop.is_set():
                    attempts.failed(Transient("the work has ended"))
                count = take(reader, offset)
                if not count:
                    raise BadInput(f"{self._folder.path}/{self.remote.path} became shorter while it was read")
                offset += count
                self._work.meter.add(count)
