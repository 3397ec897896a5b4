"""The lock that lets only one process at a time write output trees in a directory."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kaigen.diagnostics.errors import SystemFailure
from kaigen.output.index import STAGING_PREFIX
from kaigen.output.root import OutputRoot
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    import fcntl


_LOCK_NAME = STAGING_PREFIX + "lock"


@contextmanager
def write_lock(root: OutputRoot, wait_s: float) -> Iterator[int]:
    """Lock `root.parent`, which is created if it does not exist, against other writers.

    Args:
        root: the tree.
        wait_s: how long to wait for another writer, in seconds.

    Yields:
        A descriptor of the parent directory.

    Raises:
        SystemFailure: another writer held the lock for longer.
    """
    os.makedirs(root.parent, exist_ok=True)
    parent = os.open(root.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _acquire(parent, root, wait_s):
            yield parent
        else:
            with _lock_file(parent, root, wait_s):
                yield parent
    finally:
        os.close(parent)


def is_being_written(folder: str) -> bool:
    """Return whether a process has the lock of a directory, to write an output tree in it."""
    for path in (folder, os.path.join(folder, _LOCK_NAME)):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            continue  # the file system locks with the file
        finally:
            os.close(descriptor)
        break
    return False


@contextmanager
def _lock_file(parent: int, root: OutputRoot, wait_s: float) -> Iterator[None]:
    """Lock with a file, which is removed afterwards; the file of a killed run is taken over."""
    while True:
        file = os.open(_LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=parent)
        try:
            if not _acquire(file, root, wait_s):
                raise SystemFailure(f"the file system of {root.parent} cannot lock files")
            if _is_same(file, parent):
                break
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # the previous owner removed it while we waited
    try:
        yield
    finally:
        os.unlink(_LOCK_NAME, dir_fd=parent)
        os.close(file)


def _is_same(file: int, parent: int) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(_LOCK_NAME, dir_fd=parent, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _acquire(descriptor: int, root: OutputRoot, wait_s: float) -> bool:
    """Lock a file or directory; return False when the file system cannot lock it."""
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                message = f"another kaigen process has been writing in {root.parent} for {wait_s:g} s"
                raise SystemFailure(message, hint="wait for it, or stop it, and try again") from None
            time.sleep(0.02)
        except OSError as error:
            # NFS turns flock into a range lock, which needs a file open for writing: flock(2), "NFS details".
            if error.errno in (errno.EBADF, errno.EINVAL, errno.ENOTSUP):
                return False
            raise
