"""A folder that no file name can lead out of.

Every path is walked one component at a time from an open directory, and no symbolic link is followed. So
neither a name from the server nor a link left on the volume makes us write elsewhere, also not in a race.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence

from kaigen_downloader.errors import BadInput, Failure, NoSpace, Unavailable
from kaigen_downloader.text import shown, size

STATE = ".kaigen"
LOCK = f"{STATE}/lock"
"""The file that a run locks in a folder."""

LONGEST_PATH = 1024
"""Bytes of a path, as of a key of S3. Linux allows 4096, with the folder."""
_LONGEST_PART = 255
"""Bytes of a component, as file systems have it."""

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_WRITE = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF}


def split(path: str) -> tuple[str, ...]:
    """The components of a relative path.

    Raises:
        BadInput: absolute, empty, with `.` or `..`, a control character, or too long.
    """
    if len(path.encode(errors="replace")) > LONGEST_PATH:
        raise BadInput(f"the file name {shown(path)} is longer than {LONGEST_PATH} bytes")
    parts = tuple(path.split("/"))
    for part in parts:
        if part in ("", ".", ".."):
            raise BadInput(f"the file name {shown(path)} leads out of the folder or is not a plain relative path")
        if not part.isprintable() or "\\" in part:
            raise BadInput(f"the file name {shown(path)} has a character that is not accepted")
        if len(os.fsencode(part)) > _LONGEST_PART:
            raise BadInput(f"the file name {shown(path)} has a component longer than {_LONGEST_PART} bytes")
    return parts


def explain(error: OSError, what: str) -> Failure:
    """The failure that an error of the file system means for the user."""
    reason = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        return NoSpace(f"{what}: {reason}: the volume is full, give it a larger size")
    if error.errno in _NO_WRITE:
        return BadInput(
            f"{what}: {reason}: uid {os.getuid()} may not write here; "
            "mount the volume read-write and set fsGroup on the pod"
        )
    if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENOTEMPTY, errno.ENAMETOOLONG):
        return BadInput(f"{what}: {reason}")
    return Unavailable(f"{what}: {reason}")


class Folder:
    """An open folder; all paths of its methods are relative to it. Close it with `close`."""

    def __init__(self, path: str, *, create: bool = False) -> None:
        """Opens the folder.

        Args:
            path: the folder. It may be reached through a link; nothing inside it may.
            create: make it when it is not there.

        Raises:
            BadInput: it is not there, not a folder, or may not be opened.
        """
        self.path = path
        try:
            if create:
                os.makedirs(path, exist_ok=True)
            self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileExistsError:
            raise BadInput(f"{path}: not a folder") from None
        except FileNotFoundError:
            raise BadInput(f"{path}: no such folder") from None
        except OSError as error:
            raise explain(error, path) from error

    def close(self) -> None:
        """Gives the descriptor back."""
        os.close(self.fd)

    @contextlib.contextmanager
    def _parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """The open parent of a path, and the last component."""
        *folders, name = split(path)
        fd = os.dup(self.fd)
        try:
            for part in folders:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=fd)
                try:
                    below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                except OSError as error:
                    if error.errno in (errno.ENOTDIR, errno.ELOOP):
                        raise BadInput(
                            f"{self.path}/{path}: {part!r} is a link or a file where a folder is needed"
                        ) from None
                    raise
                os.close(fd)
                fd = below
            yield fd, name
        finally:
            os.close(fd)

    def open(self, path: str, flags: int, *, create: bool = False) -> int:
        """Opens a file, never through a link.

        Args:
            path: the file.
            flags: as for `os.open`.
            create: make the folders above it.

        Returns:
            A descriptor, which the caller closes.
        """
        with self._parent(path, create=create) as (fd, name):
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=fd)

    def stat(self, path: str) -> os.stat_result | None:
        """What is at the path itself (a link is not followed), or None."""
        try:
            with self._parent(path) as (fd, name):
                return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, BadInput):
            return None

    def file_size(self, path: str) -> int | None:
        """Bytes of a regular file, or None when there is none at the path."""
        found = self.stat(path)
        return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None

    def read(self, path: str, limit: int = 64 << 20) -> bytes | None:
        """The content of a small file, or None when it is not there.

        Raises:
            BadInput: it is larger than `limit` bytes, or not a regular file.
        """
        try:
            fd = self.open(path, os.O_RDONLY | os.O_NONBLOCK)  # Opening a pipe would wait for its writer.
        except FileNotFoundError:
            return None
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise BadInput(f"{self.path}/{path}: not a regular file")
            data = file.read(limit + 1)
        if len(data) > limit:
            raise BadInput(f"{self.path}/{path}: larger than {size(limit)}")
        return data

    def write(self, path: str, data: bytes) -> None:
        """Writes a small file so that after a crash either the old or the whole new one is there."""
        temporary = path + ".new"
        fd = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, create=True)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(fd, 0o644)
            os.fsync(fd)
        self.move(temporary, path)

    def move(self, source: str, target: str) -> None:
        """Renames a file over another and makes the new name durable."""
        with self._parent(source) as (from_fd, from_name), self._parent(target, create=True) as (to_fd, name):
            os.replace(from_name, name, src_dir_fd=from_fd, dst_dir_fd=to_fd)
            sync(to_fd)

    def copy(self, source: str, target: str) -> None:
        """Copies a file durably; the copy appears whole."""
        temporary = f"{STATE}/partial/copy"
        with os.fdopen(self.open(source, os.O_RDONLY), "rb") as content:
            fd = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, create=True)
            with os.fdopen(fd, "wb") as file:
                while piece := content.read(1 << 20):
                    file.write(piece)
                file.flush()
                os.fchmod(fd, 0o644)
                sync(fd)
        self.move(temporary, target)

    def remove(self, path: str) -> None:
        """Removes a file or link, and the folders above it that this leaves empty (our own stay)."""
        try:
            with self._parent(path) as (fd, name):
                os.unlink(name, dir_fd=fd)
                sync(fd)
        except (FileNotFoundError, BadInput):
            return
        above = split(path)[:-1]
        while above and above[0] != STATE:
            try:
                with self._parent("/".join(above)) as (fd, name):
                    os.rmdir(name, dir_fd=fd)
            except (OSError, BadInput):
                return
            above = above[:-1]

    def link(self, source: Folder, path: str, target: str) -> None:
        """Makes a file of another folder appear here as well, under another name of the same content.

        Raises:
            OSError: the file system has no such links, or does not allow this one.
        """
        with source._parent(path) as (from_fd, from_name), self._parent(target, create=True) as (to_fd, name):
            os.link(from_name, name, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)
            sync(to_fd)

    def remove_empty(self, files: Sequence[str], folders: Sequence[str]) -> None:
        """Removes files and folders below, then the folder itself, as far as they are empty."""
        with contextlib.suppress(OSError, BadInput):
            for path in files:
                self.remove(path)
            for path in folders:
                with contextlib.suppress(FileNotFoundError), self._parent(path) as (fd, name):
                    os.rmdir(name, dir_fd=fd)
            os.rmdir(self.path)

    def remove_folder(self, path: str) -> None:
        """Removes an empty folder; what cannot be removed stays."""
        with contextlib.suppress(OSError, BadInput), self._parent(path) as (fd, name):
            os.rmdir(name, dir_fd=fd)

    def make_folder(self, path: str) -> None:
        """Makes a folder and those above it."""
        with self._parent(path + "/x", create=True):
            return

    def make_link(self, path: str, target: str) -> None:
        """Makes a symbolic link, which replaces a file or a link of that name."""
        temporary = f"{STATE}/partial/link"
        with self._parent(temporary, create=True) as (fd, name):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
            os.symlink(target, name, dir_fd=fd)
        self.move(temporary, path)

    def make_way(self, path: str) -> None:
        """Makes the folders above a file that is going to be there.

        Raises:
            BadInput: a foreign file or folder is in the way.
        """
        with self._parent(path, create=True):
            found = self.stat(path)
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise BadInput(f"{self.path}/{path}: a folder where the model has a file")

    def names(self, path: str) -> list[str]:
        """What a folder holds; nothing when it is not there."""
        try:
            with self._parent(path + "/x") as (fd, _):
                return sorted(os.listdir(fd))
        except FileNotFoundError:
            return []

    def free(self) -> tuple[int, int]:
        """Bytes that we may still write, and bytes of the whole file system."""
        found = os.fstatvfs(self.fd)
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize

    def files(
        self, failed: Callable[[str, OSError | BadInput], None] = lambda path, error: None
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Every file and link below, our own state included; what vanishes meanwhile is left out.

        Args:
            failed: called with a folder that cannot be read, and why; what is in it is left out.
        """
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                entries = self._entries(folder)
            except (OSError, BadInput) as error:
                failed(folder.rstrip("/"), error)
                continue
            for name, found in entries:
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(f"{folder}{name}/")
                else:
                    yield folder + name, found

    def _entries(self, folder: str) -> list[tuple[str, os.stat_result]]:
        """What is in a folder, which is empty or ends in a slash."""
        found = []
        with self._parent(f"{folder}x") as (fd, _):
            for name in os.listdir(fd):
                with contextlib.suppress(FileNotFoundError):
                    found.append((name, os.stat(name, dir_fd=fd, follow_symlinks=False)))
        return found

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder at the path, or a link to one."""
        try:
            with self._parent(path) as (fd, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=fd).st_mode)
        except (OSError, BadInput):
            return False


def sync(fd: int) -> None:
    """Makes a file or folder durable, where the file system knows how."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
