"""Replaces a directory by its next state: copies unchanged entries over, swaps the two, and removes the old one."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Set
from contextlib import suppress
from typing import TypeAlias

from kaigen.diagnostics.errors import InputError
from kaigen.files import too_deep
from kaigen.output.index import directories
from kaigen.system.lazy_import import lazy_imports
from kaigen.system.limits import FOLDER_DEPTH

with lazy_imports():
    import shutil


Signature: TypeAlias = tuple[int, int, int]
"""Inode, size in bytes and mtime in nanoseconds: whether an entry is still the one that was copied."""

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

# Not EXDEV: that is a mount point, which must not be copied at all.
_NO_LINKS = frozenset((errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK))

_MOST_DEPTH = 2 * FOLDER_DEPTH
"""Most levels of directories that are deleted: a container has its own above those of a tree."""

# renameat2(2), Linux 3.15; for C libraries without a wrapper: the call's number in the kernel's tables.
_RENAME_EXCHANGE = 2
_SYSCALL = {"x86_64": 316, "aarch64": 276, "riscv64": 276}
# renameatx_np(2), macOS 10.12.
_RENAME_SWAP = 2

UNSUPPORTED = frozenset((errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.EPERM))
"""Errors of `exchange` where the kernel, the file system or a sandbox does not support it."""


def exchange(first: int, first_name: str, second: int, second_name: str) -> None:
    """Swap two entries atomically, each in a directory given by its descriptor.

    Raises:
        OSError: with an error of `UNSUPPORTED` if swapping is not supported here; nothing has changed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(first_name), os.fsencode(second_name)
    if sys.platform == "darwin":
        status = libc.renameatx_np(first, names[0], second, names[1], ctypes.c_uint(_RENAME_SWAP))
    elif hasattr(libc, "renameat2"):
        status = libc.renameat2(first, names[0], second, names[1], ctypes.c_uint(_RENAME_EXCHANGE))
    elif os.uname().machine in _SYSCALL and sys.maxsize > 2**32:
        number = ctypes.c_long(_SYSCALL[os.uname().machine])
        status = libc.syscall(number, first, names[0], second, names[1], ctypes.c_uint(_RENAME_EXCHANGE))
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), first_name, None, second_name)
    if status != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), first_name, None, second_name)


class Replacement:
    """Replaces one directory of a tree by its next state.

    First, `copy_unchanged` copies everything that is not written or removed. Once the new state is in place,
    `remove_old` deletes the old one: only entries that are in the new state or that kaigen wrote. Entries that
    somebody added in the meantime are moved to the new state.
    """

    def __init__(self, owned: Set[str], writes: Set[str], removes: Set[str]) -> None:
        """Initialize; all paths are relative to the tree's root.

        Args:
            owned: files that kaigen wrote.
            writes: files that are already in the new state.
            removes: files that must not be in the new state.
        """
        self._owned = owned
        self._writes = writes
        self._removes = removes
        self._touched = directories(writes | removes)
        self._emptied = directories(removes)
        self._known_directories = set(self._emptied)
        self._foreign: dict[str, Signature] = {}

    def copy_unchanged(self, old: int, path: str, destination: int, target: str) -> None:
        """Copy a directory into an existing one that may already have the written files.

        Args:
            old: descriptor of the directory.
            path: path of the directory; empty for the root.
            destination: descriptor that `target` is relative to.
            target: the directory to fill.

        Raises:
            OSError: EXDEV, something is mounted below.
            InputError: KG0105, folders of somebody else are nested too deep.
        """
        prefix = path + "/" if path else ""
        with os.scandir(old) as entries:
            found = list(entries)
        for entry in found:
            inner = prefix + entry.name
            if inner in self._writes or (inner in self._removes and self._is_own(entry, inner)):
                continue
            if entry.is_dir(follow_symlinks=False):
                self._copy_directory(old, entry.name, inner, destination, f"{target}/{entry.name}")
                continue
            if not self._is_own(entry, inner):
                self._foreign[inner] = signature(os.stat(entry.name, dir_fd=old, follow_symlinks=False))
            link_or_copy(old, entry.name, destination, f"{target}/{entry.name}")
        copy = os.open(target, OPEN_DIRECTORY, dir_fd=destination)
        try:
            copy_metadata(old, copy, times=bool(path) and path not in self._touched)
        finally:
            os.close(copy)

    def _copy_directory(self, old: int, name: str, path: str, destination: int, target: str) -> None:
        if path.count("/") >= FOLDER_DEPTH:
            raise InputError([too_deep(path)])
        source = os.open(name, OPEN_DIRECTORY, dir_fd=old)
        try:
            if os.fstat(source).st_dev != os.fstat(old).st_dev:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
            self._known_directories.add(path)
            with suppress(FileExistsError):
                os.mkdir(target, 0o700, dir_fd=destination)
            self.copy_unchanged(source, path, destination, target)
        finally:
            os.close(source)
        if path in self._emptied:
            # Fails if an entry stays or is written; then the directory stays too.
            with suppress(OSError):
                os.rmdir(target, dir_fd=destination)

    def _is_own(self, entry: os.DirEntry[str], path: str) -> bool:
        """Return whether kaigen wrote an entry; it writes only regular files."""
        return path in self._owned and entry.is_file(follow_symlinks=False)

    def remove_old(self, old: int, path: str, live: int, live_path: str) -> None:
        """Delete the old state; move entries to the new state that were added while it was built.

        Args:
            old: descriptor of a directory of the old state.
            path: path of that directory.
            live: descriptor of the new state's directory.
            live_path: path of the new state's directory: `path` or one above it.
        """
        make_writable(old)
        prefix = path + "/" if path else ""
        with os.scandir(old) as entries:
            found = list(entries)
        for entry in found:
            inner = prefix + entry.name
            if entry.is_dir(follow_symlinks=False) and inner in self._known_directories:
                source = os.open(entry.name, OPEN_DIRECTORY, dir_fd=old)
                try:
                    self.remove_old(source, inner, live, live_path)
                finally:
                    os.close(source)
                os.rmdir(entry.name, dir_fd=old)
            elif self._is_own(entry, inner) or self._is_copied(old, entry, inner):
                os.unlink(entry.name, dir_fd=old)
            else:
                below = inner[len(live_path) + 1 :] if live_path else inner
                self._move_to_new(old, entry, live, below, stale=inner in self._foreign)

    def _is_copied(self, old: int, entry: os.DirEntry[str], path: str) -> bool:
        known = self._foreign.get(path)
        return known is not None and known == signature(os.stat(entry.name, dir_fd=old, follow_symlinks=False))

    def _move_to_new(self, old: int, entry: os.DirEntry[str], live: int, path: str, *, stale: bool) -> None:
        """Move an entry to the same path in the new state, or to a similar name if the path is taken."""
        directory = os.dup(live)
        try:
            for part in path.split("/")[:-1]:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=directory)
                try:
                    inner = os.open(part, OPEN_DIRECTORY, dir_fd=directory)
                except OSError:
                    break  # a file is in the way: use the nearest directory
                os.close(directory)
                directory = inner
            name = entry.name
            # The copy in the new state is the former content of this file, so replace it.
            if exists(directory, name) and (not stale or entry.is_dir(follow_symlinks=False)):
                name += f".kept-{os.urandom(4).hex()}"
            os.rename(entry.name, name, src_dir_fd=old, dst_dir_fd=directory)
            # rename(2) does nothing if both are links of one file, which was edited in place.
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=old)
        finally:
            os.close(directory)


def exists(directory: int, name: str) -> bool:
    """Return whether an open directory has an entry of this name, of any kind."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def signature(found: os.stat_result) -> Signature:
    """Return the signature of an entry."""
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def link_or_copy(source: int, name: str, destination: int, target: str) -> None:
    """Link or copy an entry that is not a directory; symbolic links are not followed.

    Args:
        source: descriptor of the directory of `name`.
        name: the entry.
        destination: descriptor of the directory that `target` is relative to.
        target: the path to create.

    Raises:
        OSError: EXDEV, there is a mount point between the two; any other error of the file system.
    """
    try:
        os.link(name, target, src_dir_fd=source, dst_dir_fd=destination, follow_symlinks=False)
    except FileExistsError:
        # Only on a case-insensitive file system: the target is this file, just written under its new name.
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        found = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), target, dir_fd=destination)
        elif stat.S_ISREG(found.st_mode):
            _copy(source, name, destination, target)
        else:
            raise


def _copy(source: int, name: str, destination: int, target: str) -> None:
    with (
        open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=source), "rb") as old,
        open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=destination), "wb") as new,
    ):
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        copy_metadata(old.fileno(), new.fileno(), times=True)


def copy_metadata(source: int, copy: int, *, times: bool) -> None:
    """Copy owner, extended attributes and mode of an open file or directory, as far as permitted.

    Args:
        source: descriptor to copy from.
        copy: descriptor to change.
        times: copy the timestamps too.
    """
    wanted, current = os.fstat(source), os.fstat(copy)
    if (wanted.st_uid, wanted.st_gid) != (current.st_uid, current.st_gid):
        # Only root may change the owner, and only members may set a group.
        with suppress(PermissionError):
            os.chown(copy, wanted.st_uid, wanted.st_gid)
    if hasattr(os, "listxattr"):
        _copy_attributes(source, copy)
    os.fchmod(copy, stat.S_IMODE(wanted.st_mode))
    if times:
        os.utime(copy, ns=(wanted.st_atime_ns, wanted.st_mtime_ns))


def _copy_attributes(source: int, copy: int) -> None:
    """Copy extended attributes, such as access control lists and labels; skip those we may not set."""
    try:
        names = os.listxattr(source)
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            os.setxattr(copy, name, os.getxattr(source, name))


def remove_directory(parent: int, name: str, depth: int = 0) -> None:
    """Delete a directory and its content; symbolic links are deleted, not followed.

    Args:
        parent: descriptor of the directory of `name`.
        name: the directory.
        depth: how many directories are being deleted above it.

    Raises:
        OSError: ENAMETOOLONG, directories are nested too deep; any other error of the file system.
    """
    if depth > _MOST_DEPTH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)
    directory = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    try:
        make_writable(directory)
        with os.scandir(directory) as entries:
            found = list(entries)
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                remove_directory(directory, entry.name, depth + 1)
            else:
                os.unlink(entry.name, dir_fd=directory)
    finally:
        os.close(directory)
    os.rmdir(name, dir_fd=parent)


def make_writable(directory: int) -> None:
    """Make it possible to delete entries of a write-protected directory."""
    if os.fstat(directory).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(directory, stat.S_IRWXU)
