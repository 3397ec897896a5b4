"""Which object of one side is which of the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from kaigen.diff.objects import Obj

# kaigen's content hashes: a dash and eight hexadecimal digits at the end of a name.
_HASH = re.compile(r"-[0-9a-f]{6,64}$")


class Pair(NamedTuple):
    """An object before and now.

    Attributes:
        old: None when it is added.
        new: None when it is removed.
        passed_from: the app that held it before, when that was another one.
    """

    old: Obj | None
    new: Obj | None
    passed_from: str = ""


class Pairing(NamedTuple):
    """What was matched, and what was left over."""

    pairs: list[Pair]
    olds: list[Obj]
    news: list[Obj]


def stem(name: str) -> str:
    """A name without the content hash that it may end in."""
    return _HASH.sub("", name)


def pair_objects(olds: Iterable[Obj], news: Iterable[Obj], file_of: Callable[[Obj], str]) -> Pairing:
    """Match the objects of one app.

    A file's name is stable for an object's role, so the file comes first; then who an object is; then its
    name without the hash. A step matches only what it cannot confuse.
    """
    result = Pairing([], list(olds), list(news))
    for identity in (
        lambda obj: (file_of(obj), *full_identity(obj)),
        lambda obj: (file_of(obj), obj.type),
        full_identity,
        lambda obj: (obj.type, obj.namespace, stem(obj.name)),
    ):
        result = _match(result, identity)
    return result


def full_identity(obj: Obj) -> tuple[str, str, str]:
    """What the API server tells objects apart by."""
    return (obj.type, obj.namespace, obj.name)


def _match(so_far: Pairing, identity: Callable[[Obj], Hashable]) -> Pairing:
    olds, news = _unique(so_far.olds, identity), _unique(so_far.news, identity)
    matched = [Pair(obj, news[key]) for key, obj in olds.items() if key in news]
    gone = {id(obj) for pair in matched for obj in pair[:2]}
    return Pairing(
        so_far.pairs + matched,
        [obj for obj in so_far.olds if id(obj) not in gone],
        [obj for obj in so_far.news if id(obj) not in gone],
    )


def _unique(items: Iterable[Obj], identity: Callable[[Obj], Hashable]) -> dict[Hashable, Obj]:
    found: dict[Hashable, Obj] = {}
    ambiguous: set[Hashable] = set()
    for obj in items:
        key = identity(obj)
        if key in found:
            ambiguous.add(key)
        found[key] = obj
    return {key: obj for key, obj in found.items() if key not in ambiguous}
