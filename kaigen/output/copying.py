"""Copies directory entries: by hard link if possible, by content if not."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TypeAlias

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
