"""Limits of time and memory for one run of kaigen, whatever is in the repository.

A timer interrupts the run ten times each second and compares; Python's regular expressions and loops notice it.
Processes that the run forks are killed when it stops. The kernel refuses more than twice the memory, also to them.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kaigen.diagnostics.errors import InvalidLimit
from kaigen.system.limits import EVERY, RUN_MEMORY, RUN_TIME

if sys.platform != "win32":
    import resource

_TICK_S = 0.1


class LimitReached(BaseException):
    """The run reached a limit. Not an `Exception`, so that no handler of other errors ends it early.

    Attributes:
        hint: how to raise the limit.
    """

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@contextmanager
def apply_limits() -> Iterator[None]:
    """Limit the time and the memory of the block.

    Only the main thread can receive an alarm, and Windows has none of this: there the block runs without limits.

    Raises:
        LimitReached: the block took too long, or needed too much memory.
        InvalidLimit: a limit in the environment is not a number.
    """
    seconds, mebibytes = _read_limits()
    if sys.platform == "win32" or not _in_main_thread():
        yield
        return

    begin = time.monotonic()

    def reached() -> LimitReached | None:
        if seconds and time.monotonic() - begin >= seconds:
            return LimitReached(f"stopped after {seconds} s, the limit of a run", RUN_TIME.hint)
        return _out_of_memory(mebibytes) if mebibytes and _peak_mib() > mebibytes else None

    def check(_number: int, _frame: FrameType | None) -> None:
        if error := reached():
            raise error

    handler = signal.signal(signal.SIGALRM, check)
    before = resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_REAL, _TICK_S, _TICK_S)
    _limit_addresses(2 * mebibytes, before)
    try:
        yield
    except Exception as error:
        # An import that a limit interrupts leaves a broken module, and cleanup that uses it fails in its own way.
        limit = _out_of_memory(mebibytes) if isinstance(error, MemoryError) else reached()
        if limit is None:
            raise
        raise limit from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _out_of_memory(mebibytes: int) -> LimitReached:
    return LimitReached(f"out of memory: a run may use {mebibytes} MiB", RUN_MEMORY.hint)


def _peak_mib() -> float:
    """Return the most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _limit_addresses(mebibytes: int, before: tuple[int, int]) -> None:
    bounds = [bound for bound in (mebibytes * 2**20, *before) if bound > 0]
    if mebibytes and bounds:
        resource.setrlimit(resource.RLIMIT_AS, (min(bounds), before[1]))


def _in_main_thread() -> bool:
    threads = sys.modules.get("threading")
    return threads is None or threads.current_thread() is threads.main_thread()


def _read_limits() -> tuple[int, int]:
    """Return the limits of a run in seconds and MiB, after reading every limit."""
    try:
        for limit in EVERY:
            limit.read()
    except ValueError as error:
        raise InvalidLimit(str(error)) from None
    return RUN_TIME.read(), RUN_MEMORY.read()
