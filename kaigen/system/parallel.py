"""The same work for each of many items, on every core.

A child process is a fork of this one: it has everything that the work needs, and gives back only results. Where that
is not plainly safe, or there are too few items to pay for it, all is done here, one item after the other.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

LEAST_ITEMS = 100
"""Items that a process must have to do, or it costs more than it brings. Measured with specs: a millisecond each."""
MOST_PROCESSES = 8

T = TypeVar("T")
R = TypeVar("R")


def map_on_cores(
    work: Callable[[T], R], items: Sequence[T], tell: Callable[[int], None] | None = None
) -> list[R]:
    """`[work(item) for item in items]`, by several processes when there are many items.

    Args:
        work: depends on its item and on what is here now, and on nothing that it does to others; what it changes may
            be lost, what it returns must be picklable.
        items: in any order.
        tell: told, before an item, about how many are done.

    Raises:
        Exception: what `work` raises for one of the items.
    """
    count = min(_cores(), MOST_PROCESSES, len(items) // LEAST_ITEMS)
    if count < 2:
        return _do(work, items, tell)
    # What the first one imports and remembers is then there for all.
    first = work(items[0])
    # Every n-th item, since neighbours are alike and some kinds take longer than others.
    shares = [items[start::count] for start in range(count)]
    children: list[_Child] = []
    results: list[R] = [first] * len(items)
    try:
        for share in shares[1:]:
            children.append(_Child(work, share))
        results[count::count] = _do(work, shares[0][1:], tell, each=count)
        for start, child in enumerate(children, 1):
            found = child.results()
            # It met an error, or was killed: done here, the work tells what is wrong as if there were no children.
            results[start::count] = _do(work, shares[start]) if found is None else found
    finally:
        for child in children:
            child.end()
    return results


def _do(
    work: Callable[[T], R], items: Sequence[T], tell: Callable[[int], None] | None = None, each: int = 1
) -> list[R]:
    results = []
    for done, item in enumerate(items):
        if tell is not None:
            tell(done * each)
        results.append(work(item))
    return results


def _cores() -> int:
    """The cores that this process may use; 1 where it must not be forked."""
    threads = sys.modules.get("threading")
    # A fork holds one thread, and locks of the others for ever. macOS's own libraries may not be used after one.
    if sys.platform != "linux" or (threads is not None and threads.active_count() > 1):
        return 1
    return len(os.sched_getaffinity(0))


class _Child:
    """A process that does a share of the work."""

    def __init__(self, work: Callable[[T], object], share: Sequence[T]) -> None:
        self._pipe, write = os.pipe()
        try:
            self._process = os.fork()
            if self._process == 0:
                _run(work, share, self._pipe, write)
        except OSError:
            self._process = 0  # no room for one more process: an empty pipe, and the parent does the share
        os.close(write)

    def results(self) -> list[Any] | None:
        """What it found; waits for it. None when it did not come to its end."""
        import pickle

        with open(self._pipe, "rb", closefd=False) as pipe:
            data = pipe.read()
        process, self._process = self._process, 0
        done = process != 0 and os.waitpid(process, 0)[1] == 0
        return pickle.loads(data) if done else None

    def end(self) -> None:
        """Leave nothing of it, whatever it is at."""
        os.close(self._pipe)
        if self._process:
            import signal

            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)


def _run(work: Callable[[T], object], share: Sequence[T], read: int, write: int) -> NoReturn:
    """The whole life of a child: nothing above it on the stack may go on in two processes."""
    try:
        import pickle

        os.close(read)  # so that a write fails when the parent is gone, and the child ends too
        # What was there before is everyone's: to look through it for cycles would copy it.
        gc.freeze()
        data = pickle.dumps([work(item) for item in share], pickle.HIGHEST_PROTOCOL)
        with open(write, "wb") as pipe:
            pipe.write(data)
        os._exit(0)
    finally:
        os._exit(1)
