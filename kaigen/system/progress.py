"""Telling how far long work is, without knowing who wants to know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[str, int, int], None]
"""Takes what is being done, such as `compiling`, how many are done, and of how many. It is called often."""

_T = TypeVar("_T")


def counted(items: Collection[_T], what: str, progress: Progress | None) -> Iterable[_T]:
    """The items; before each is given, it is told how many were.

    Args:
        items: what there is to do.
        what: what is done with them.
        progress: who is told; nobody when None.
    """
    return items if progress is None else _count(items, what, progress)


def _count(items: Collection[_T], what: str, progress: Progress) -> Iterator[_T]:
    for done, item in enumerate(items):
        progress(what, done, len(items))
        yield item
