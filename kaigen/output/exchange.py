"""Swaps two directory entries atomically, so that a reader sees either the old one or the new one."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

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
