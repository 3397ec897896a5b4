"""A process that evaluates templates or patches of users, within limits of its own.

It reads requests from a socket and answers each. Before it reads the first one it gives up what it does not need: it
cannot open files or sockets, write to files or start processes, and has little memory. `kaigen.extend.process` starts
it, and ends it when it takes too long.
"""

from __future__ import annotations

import faulthandler
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn

if sys.platform != "win32":
    import resource

READY, PROGRESS, ANSWER, MEMORY, BUG = b"r", b"p", b"a", b"m", b"b"
"""First byte of what the process sends: that it has started, the number of what it works on, an answer, that it has no
memory left, or a traceback."""

HEAD = 5
"""Bytes before the content: its kind and its length."""

Report = Callable[[int], None]
"""Receives the number of the template, object or operation that is evaluated next."""


def head(kind: bytes, length: int) -> bytes:
    """Return what is sent before a content."""
    return kind + length.to_bytes(HEAD - 1, "big")


def main(module: str, seconds: int, mebibytes: int) -> NoReturn:
    """Answer requests from standard input until it is closed.

    Args:
        module: has the functions `prepare`, which loads everything that `answer` needs, and `answer`.
        seconds: processor time for each request; 0 for no limit.
        mebibytes: address space of the process; 0 for no limit.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    evaluator = import_module(module)
    evaluator.prepare()
    _give_up(mebibytes)
    faulthandler.enable(file=2, all_threads=False)
    faulthandler.register(signal.SIGXCPU, file=2, all_threads=False, chain=True)
    _write(READY, b"")
    while True:
        length = int.from_bytes(_read(HEAD)[1:], "big")
        _limit_time(seconds)
        try:
            _write(ANSWER, evaluator.answer(_read(length), _report))
        except (MemoryError, SystemError):
            # At the limit, Python raises a SystemError where a call returned NULL without setting the MemoryError.
            _write(MEMORY, b"")
        except Exception:
            _write(BUG, traceback.format_exc().encode("utf-8", "replace"))


def _report(number: int) -> None:
    _write(PROGRESS, number.to_bytes(4, "big"))


def _read(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(0, min(size, 1 << 20))
        if not part:
            os._exit(0)  # kaigen has ended
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(kind: bytes, content: bytes) -> None:
    data = memoryview(head(kind, len(content)) + content)
    while data:
        data = data[os.write(0, data) :]


def _give_up(mebibytes: int) -> None:
    """Set limits that the process cannot raise again, as far as the system has them."""
    size = mebibytes << 20 if mebibytes else None
    for name, most in (
        ("RLIMIT_AS", size),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_NPROC", 0),
        ("RLIMIT_NOFILE", 0),
    ):
        limit = getattr(resource, name, None)
        if limit is None or most is None:
            continue
        try:
            hard = resource.getrlimit(limit)[1]
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(limit, (bound, bound))
        except (OSError, ValueError):
            continue  # macOS has no limit of addresses


def _limit_time(seconds: int) -> None:
    """Limit the processor time of the next request: the kernel ends the process with SIGXCPU."""
    if not seconds:
        return
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    most = math.ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard < 0 else min(most, hard), hard))
