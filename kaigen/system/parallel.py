"""Run a function for many items on several cores.

A child process is a fork of this one: it has everything that the function needs, and returns only results. Where a
fork is not safe, or there are too few items, this process does everything.

`concurrent.futures.ProcessPoolExecutor` takes as much CPU time, but its workers live on when this process is killed.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    import pickle
    import signal


LEAST_ITEMS = 100
"""Fewest items for which a process saves time. Measured with specs, which take a millisecond each."""
MOST_PROCESSES = 8

T = TypeVar("T")
R = TypeVar("R")


def map_on_cores(work: Callable[[T], R], items: Sequence[T], report: Callable[[int], None] | None = None) -> list[R]:
    """Return `[work(item) for item in items]`, computed by several processes when there are many items.

    Args:
        work: the function. It must not depend on calls for other items, and its changes to objects may be lost; its
            result must be picklable.
        items: in any order.
        report: receives, before an item, about how many are done.

    Raises:
        Exception: as `work` raises it for one of the items.
    """
    count = min(_cores(), MOST_PROCESSES, len(items) // LEAST_ITEMS)
    if count < 2:
        return _do(work, items, report)
    # Modules and caches that the first item loads are then there for all processes.
    first = work(items[0])
    # Every n-th item: neighbours are similar, and some kinds take longer than others.
    shares = [items[start::count] for start in range(count)]
    children: list[_Child] = []
    results: list[R] = [first] * len(items)
    try:
        for share in shares[1:]:
            children.append(_Child(work, share))
        results[count::count] = _do(work, shares[0][1:], report, each=count)
        for start, child in enumerate(children, 1):
            found = child.results()
            # After an error, or when the child was killed, the work runs here and raises the error as without children.
            results[start::count] = _do(work, shares[start]) if found is None else found
    finally:
        for child in children:
            child.end()
    return results


def _do(
    work: Callable[[T], R], items: Sequence[T], report: Callable[[int], None] | None = None, each: int = 1
) -> list[R]:
    results = []
    for done, item in enumerate(items):
        if report is not None:
            report(done * each)
        results.append(work(item))
    return results


def _cores() -> int:
    """Return how many cores this process may use; 1 where it must not be forked."""
    threads = sys.modules.get("threading")
    # A fork has one thread, but the locks of all. System libraries of macOS must not be used after a fork.
    if sys.platform != "linux" or (threads is not None and threads.active_count() > 1):
        return 1
    return len(os.sched_getaffinity(0))


class _Child:
    """A child process with a share of the items."""

    def __init__(self, work: Callable[[T], object], share: Sequence[T]) -> None:
        self._pipe, write = os.pipe()
        try:
            self._process = os.fork()
            if self._process == 0:
                _run(work, share, self._pipe, write)
        except OSError:
            self._process = 0  # the system has no free process: the pipe stays empty, and the parent does the share
        os.close(write)

    def results(self) -> list[Any] | None:
        """Wait for the child and return its results; None when it did not finish."""
        with open(self._pipe, "rb", closefd=False) as pipe:
            data = pipe.read()
        process, self._process = self._process, 0
        done = process != 0 and os.waitpid(process, 0)[1] == 0
        return pickle.loads(data) if done else None

    def end(self) -> None:
        """Kill the child if it still runs."""
        os.close(self._pipe)
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)


def _run(work: Callable[[T], object], share: Sequence[T], read: int, write: int) -> NoReturn:
    """Run in the child, and exit: callers further up the stack must not run in two processes."""
    try:
        os.close(read)  # so that a write fails when the parent is gone, and the child ends too
        # Objects of the parent are shared memory: the garbage collector would copy them.
        gc.freeze()
        data = pickle.dumps([work(item) for item in share], pickle.HIGHEST_PROTOCOL)
        with open(write, "wb") as pipe:
            pipe.write(data)
        os._exit(0)
    finally:
        os._exit(1)
