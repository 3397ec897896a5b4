"""A partially fetched file: its bytes, and a journal of the complete parts.

The journal gets one line for each part that is wholly in the file, with its CRC-32. A kill of the process
loses only the parts under way. After a crash of the node, parts whose line was saved and whose bytes were not
are found by their CRC and fetched again, so nothing has to be synced while the download runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os

from kaigen_downloader.folder import STATE, Folder, explain, sync
from kaigen_downloader.remote import RemoteFile

WHERE = f"{STATE}/partial"


def key(remote: RemoteFile) -> str:
    """Return the name of a partial file: it depends on path and content, not on the commit."""
    return hashlib.sha256(f"{remote.path}\0{remote.oid}".encode()).hexdigest()[:40]


def kept_bytes(folder: Folder, remote: RemoteFile) -> int:
    """Return the bytes on disk that an earlier run allocated for this file."""
    found = folder.stat(f"{WHERE}/{key(remote)}.part")
    return min(remote.size, found.st_blocks * 512) if found is not None else 0


def others(folder: Folder, files: tuple[RemoteFile, ...]) -> list[str]:
    """Yield partial files of earlier runs that are no longer needed."""
    keep = {f"{key(remote)}{end}" for remote in files for end in (".part", ".journal")}
    return [f"{WHERE}/{name}" for name in folder.names(WHERE) if name not in keep]


def forget_others(folder: Folder, files: tuple[RemoteFile, ...]) -> None:
    """Remove it."""
    for path in others(folder, files):
        folder.remove(path)


class Partial:
    """A partial file and its journal. The caller locks."""

    def __init__(self, folder: Folder, remote: RemoteFile, part_size: int) -> None:
        """Open the partial file of an earlier run, or start a new one.

        Args:
            folder: the model folder.
            remote: the file.
            part_size: bytes of a part, unless the journal of an earlier run has its own.

        Raises:
            NoSpace: the file system refuses a file of that size.
            BadInput: it refuses to be written.
        """
        self._folder = folder
        self.remote = remote
        self._path = f"{WHERE}/{key(remote)}.part"
        self._journal_path = f"{WHERE}/{key(remote)}.journal"
        self._journal: int | None = None
        self.part_size = part_size
        self.done: list[int | None] = []
        self.resumed: set[int] = set()
        try:
            found = self._load()
            self.fd = folder.open(self._path, os.O_RDWR | os.O_CREAT, create=True)
            if found is None:
                self._begin(part_size)
            else:
                os.ftruncate(self.fd, remote.size)
                self.part_size, self.done = found
                self._journal = folder.open(self._journal_path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise explain(error, remote.path) from error
        self.resumed = set(self.complete_parts())

    def _header(self) -> dict[str, object]:
        return {"path": self.remote.path, "size": self.remote.size, "oid": self.remote.oid, "part": self.part_size}

    def _load(self) -> tuple[int, list[int | None]] | None:
        """Return part size and CRC of each complete part, from an earlier run's journal."""
        if self._folder.file_size(self._path) != self.remote.size:
            return None
        data = self._folder.read(self._journal_path)
        if data is None:
            return None
        # What follows the last line end is a line that was not wholly written.
        lines = data.decode("ascii", "replace").split("\n")[:-1]
        try:
            header = json.loads(lines[0])
            part_size = int(header["part"])
            if part_size < 1 or header != self._header() | {"part": part_size}:
                return None
            done: list[int | None] = [None] * -(-self.remote.size // part_size)
            for line in lines[1:]:
                index, crc = line.split(" ")
                done[int(index)] = int(crc, 16)
        except (ValueError, KeyError, IndexError, TypeError):
            return None
        return part_size, done

    def _begin(self, part_size: int) -> None:
        self.part_size = part_size
        self.done = [None] * -(-self.remote.size // part_size)
        self.resumed = set()
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None
        self._folder.remove(self._journal_path)
        os.ftruncate(self.fd, 0)
        os.ftruncate(self.fd, self.remote.size)
        # A file of one part has nothing to resume.
        if len(self.done) > 1:
            self._journal = self._folder.open(self._journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, create=True)
            os.write(self._journal, (json.dumps(self._header()) + "\n").encode())

    def bounds(self, index: int) -> tuple[int, int]:
        """Return the first byte of a part and the one after its last."""
        start = index * self.part_size
        return start, min(start + self.part_size, self.remote.size)

    def write(self, view: memoryview, offset: int) -> None:
        """Write bytes at their position.

        Raises:
            NoSpace: the disk is full.
        """
        try:
            while view:
                written = os.pwrite(self.fd, view, offset)
                view, offset = view[written:], offset + written
        except OSError as error:
            raise explain(error, self.remote.path) from error

    def read(self, view: memoryview, offset: int) -> int:
        """Read bytes back; 0 at the end of the file."""
        try:
            return os.preadv(self.fd, [view], offset)
        except OSError as error:
            raise explain(error, self.remote.path) from error

    def complete(self, index: int, crc: int) -> None:
        """Record a complete part."""
        try:
            if self._journal is not None:
                os.write(self._journal, b"%d %08x\n" % (index, crc))
        except OSError as error:
            raise explain(error, self.remote.path) from error
        self.done[index] = crc
        self.resumed.discard(index)

    def start_saving(self, index: int) -> None:
        """Make the kernel write a complete part to the disk now and drop what it has written, so that the end is quick.

        Without it, up to a third of the memory is written to the disk when the file is complete.
        """
        start, end = self.bounds(index)
        with contextlib.suppress(OSError, AttributeError):  # Not every system has this call.
            os.posix_fadvise(self.fd, start, end - start, os.POSIX_FADV_DONTNEED)

    def complete_parts(self) -> list[int]:
        """Return the complete parts."""
        return [index for index, crc in enumerate(self.done) if crc is not None]

    def forget(self, index: int) -> None:
        """Mark a part as missing."""
        self.done[index] = None
        self.resumed.discard(index)

    def restart(self, part_size: int) -> None:
        """Discard all bytes."""
        try:
            self._begin(part_size)
        except OSError as error:
            raise explain(error, self.remote.path) from error

    def publish(self) -> None:
        """Move the complete file to its destination, durably."""
        try:
            os.fchmod(self.fd, 0o644)
            sync(self.fd)
            self._folder.move(self._path, self.remote.path)
            self._folder.remove(self._journal_path)
        except OSError as error:
            raise explain(error, self.remote.path) from error
        self.close()

    def close(self) -> None:
        """Close the descriptors; the bytes stay for the next run."""
        for fd in (self.fd, self._journal):
            if fd is not None:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self._journal = None
