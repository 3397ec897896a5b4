"""Matches the objects of the old tree with those of the new one, and the fields of two objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kaigen.core.json_types import Json
from kaigen.diagnostics.problem import At
from kaigen.diff.model import ABSENT, FieldChange
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


_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    # The merge keys of Kubernetes; `name` alone does not identify a volume mount.
    "volumeMounts": (("mountPath",),),
    "volumeDevices": (("devicePath",),),
    "ports": (("name",), ("containerPort", "protocol"), ("port", "protocol"), ("containerPort",), ("port",)),
    "hostAliases": (("ip",),),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"),),
    "matchExpressions": (("key", "operator"), ("key",)),
    "requirements": (("key", "operator"), ("key",)),
    "tolerations": (("key", "operator", "effect"), ("key", "effect"), ("key",)),
    "rules": (("name",), ("host",)),
    "subjects": (("kind", "namespace", "name"), ("kind", "name")),
}
_NAMED: tuple[tuple[str, ...], ...] = (("name",),)


def diff_fields(old: Json, new: Json, keys: tuple[str, ...] = ()) -> Iterator[FieldChange]:
    """Yield every field in which `new` differs from `old`, in the order of the object.

    A field that only one of them has is one change with the whole value, regardless of its depth.
    """
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _maps(old, new, keys)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(old, new, keys)
    elif _differs(old, new):
        yield FieldChange(keys, old, new)


def _differs(old: Json, new: Json) -> bool:
    # 1 == True and 1 == 1.0 in Python; in YAML the first two differ and the last two do not.
    return isinstance(old, bool) != isinstance(new, bool) or old != new


def _maps(old: Mapping[str, Json], new: Mapping[str, Json], keys: tuple[str, ...]) -> Iterator[FieldChange]:
    for key in [*old, *(key for key in new if key not in old)]:
        path = (*keys, str(key))
        if key not in new:
            yield FieldChange(path, old[key], ABSENT)
        elif key not in old:
            yield FieldChange(path, ABSENT, new[key])
        else:
            yield from diff_fields(old[key], new[key], path)


def _lists(old: Sequence[Json], new: Sequence[Json], keys: tuple[str, ...]) -> Iterator[FieldChange]:
    field = keys[-1] if keys else ""
    for names in _KEYS.get(field, _NAMED):
        before, after = _index(old, names), _index(new, names)
        if before is not None and after is not None:
            yield from _named(before, after, keys)
            return
    yield from _numbered(old, new, keys)


def _index(items: Sequence[Json], names: tuple[str, ...]) -> dict[str, Json] | None:
    """Return the elements by the fields that name them; None when these are not unique."""
    found: dict[str, Json] = {}
    for item in items:
        if not isinstance(item, dict):
            return None
        parts = [str(item[name]) for name in names if isinstance(item.get(name), (str, int))]
        label = "/".join(parts)
        if not label or names[0] not in item or label in found:
            return None
        found[label] = item
    return found


def _named(old: Mapping[str, Json], new: Mapping[str, Json], keys: tuple[str, ...]) -> Iterator[FieldChange]:
    for label in [*old, *(label for label in new if label not in old)]:
        path = (*keys, At(label))
        if label not in new:
            yield FieldChange(path, old[label], ABSENT)
        elif label not in old:
            yield FieldChange(path, ABSENT, new[label])
        else:
            yield from diff_fields(old[label], new[label], path)
    stayed = [label for label in old if label in new]
    order = [label for label in new if label in old]
    if stayed != order:
        yield FieldChange((*keys, At("order")), list(stayed), list(order))


def _numbered(old: Sequence[Json], new: Sequence[Json], keys: tuple[str, ...]) -> Iterator[FieldChange]:
    """Compare the elements between the common beginning and the common end, pair by pair."""
    start = 0
    while start < min(len(old), len(new)) and _same(old[start], new[start]):
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and _same(old[-1 - end], new[-1 - end]):
        end += 1
    old_stop, new_stop = len(old) - end, len(new) - end
    for number in range(start, max(old_stop, new_stop)):
        path = (*keys, At(str(number)))
        if number >= new_stop:
            yield FieldChange(path, old[number], ABSENT)
        elif number >= old_stop:
            yield FieldChange(path, ABSENT, new[number])
        else:
            yield from diff_fields(old[number], new[number], path)


def _same(old: Json, new: Json) -> bool:
    """Return whether two values are equal, without collecting differences."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_same(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return not _differs(old, new)
