"""Bringing what a directory holds into another one: by hard link where that works, by copy where not."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TypeAlias

Signature: TypeAlias = tuple[int, int, int]
"""Inode, size in bytes and mtime in nanoseconds: whether an entry is still the one that was carried."""

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

# Not EXDEV: that is a mount point, which must not be carried at all.
_NO_LINKS = frozenset(
    (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)
)


def signature(found: os.stat_result) -> Signature:
    """The three numbers of an entry."""
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def carry(source: int, name: str, destination: int, target: str) -> None:
    """Make an entry that is no directory appear in a second place too; symbolic links are not followed.

    Args:
        source: descriptor of the directory that holds `name`.
        name: the entry.
        destination: descriptor of the directory that `target` is relative to.
        target: where it shall appear.

    Raises:
        OSError: EXDEV when a mount point lies between; others as the file system gives them.
    """
    try:
        os.link(name, target, src_dir_fd=source, dst_dir_fd=destination, follow_symlinks=False)
    except FileExistsError:
        # Only where case is ignored: what was just written there is this file under its new name.
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
    from shutil import copyfileobj

    with (
        open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=source), "rb") as old,
        open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=destination), "wb") as new,
    ):
        copyfileobj(old, new, 1 << 20)
        new.flush()
        imitate(old.fileno(), new.fileno(), times=True)


def imitate(source: int, copy: int, *, times: bool) -> None:
    """Give an open file or directory the owner, attributes and mode of another, as far as we may.

    Args:
        source: descriptor of the one to be like.
        copy: descriptor of the one to change.
        times: also the time stamps.
    """
    like, now = os.fstat(source), os.fstat(copy)
    if (like.st_uid, like.st_gid) != (now.st_uid, now.st_gid):
        # Only root may give files away; a group that we are not in cannot be given either.
        with suppress(PermissionError):
            os.chown(copy, like.st_uid, like.st_gid)
    if hasattr(os, "listxattr"):
        _copy_attributes(source, copy)
    os.fchmod(copy, stat.S_IMODE(like.st_mode))
    if times:
        os.utime(copy, ns=(like.st_atime_ns, like.st_mtime_ns))


def _copy_attributes(source: int, copy: int) -> None:
    """Access control lists, labels and the like; what we may not set stays behind."""
    try:
        names = os.listxattr(source)
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            os.setxattr(copy, name, os.getxattr(source, name))


def remove_directory(parent: int, name: str) -> None:
    """Delete a directory with all it holds; symbolic links go, what they point to stays."""
    directory = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    try:
        make_writable(directory)
        with os.scandir(directory) as entries:
            found = list(entries)
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                remove_directory(directory, entry.name)
            else:
                os.unlink(entry.name, dir_fd=directory)
    finally:
        os.close(directory)
    os.rmdir(name, dir_fd=parent)


def make_writable(directory: int) -> None:
    """Let us delete entries of a directory that was write-protected."""
    if os.fstat(directory).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(directory, stat.S_IRWXU)
