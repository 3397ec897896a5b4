"""Matches the objects of the old tree with those of the new one."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from kaigen.diff.objects import Obj

# kaigen's content hashes: a dash and hexadecimal digits at the end of a name.
_HASH = re.compile(r"-[0-9a-f]{6,64}$")


class Pair(NamedTuple):
    """An object before and now.

    Attributes:
        old: None when it is added.
        new: None when it is removed.
        passed_from: the app that owned it before, if that was another one.
    """

    old: Obj | None
    new: Obj | None
    passed_from: str = ""


class Pairing(NamedTuple):
    """The matched pairs, and the objects without a match."""

    pairs: list[Pair]
    olds: list[Obj]
    news: list[Obj]


def stem(name: str) -> str:
    """Return a name without its content hash."""
    return _HASH.sub("", name)


def pair_objects(olds: Iterable[Obj], news: Iterable[Obj], file_of: Callable[[Obj], str]) -> Pairing:
    """Match the objects of one app.

    A file's name is stable for an object's role, so the file is tried first, then the object's identity, then its
    name without the hash. Each step matches only unambiguous objects.
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
    """Return the identity of an object for the API server."""
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
