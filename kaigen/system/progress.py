"""Progress of long work, reported to a callback."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[str, int, int], None]
"""Receives the name of the work, such as `compiling`, the number of items done, and their total. It is called often."""

_T = TypeVar("_T")


def report_progress(items: Collection[_T], what: str, progress: Progress | None) -> Iterable[_T]:
    """Return the items, and report before each one how many are done.

    Args:
        items: the items.
        what: the name of the work.
        progress: receives the numbers; nothing is reported when None.
    """
    return items if progress is None else _count(items, what, progress)


def _count(items: Collection[_T], what: str, progress: Progress) -> Iterator[_T]:
    for done, item in enumerate(items):
        progress(what, done, len(items))
        yield item
