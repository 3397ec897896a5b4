"""Changes of valid objects, each field by its schema: one change at a time, or two in the same mapping.

A change need not make an object invalid: what it does is for the API server to say.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kaigen.kubernetes.schemas import DEFAULT_VERSION, definition, index
from tests.cases import cases
from tests.cluster.client import Object
from tests.unit.check.example_objects import objects

Place = tuple[str | int, ...]
Values = dict[str, list[Any]]
Step = tuple[Place, str, Callable[[Any, str | int], None]]
"""Where a change is, what it does, and a function that does it to the parent."""

_FORM = "Wrong_Form!"
_TEXTS = [
    "",
    " ",
    "x",
    "X",
    "a b",
    "a/b",
    "a/b/c",
    "/a",
    "../a",
    "a..b",
    "-a",
    "9",
    "1.5",
    "*",
    _FORM,
    "x" * 64,
    "x" * 254,
]
_COUNTS = [-1, 0, 1, 2, 512, 65536, 2**31]
_AMOUNTS = ["-1", "0", "1m", "1.5", "1Ki", "0.5Gi", "1e3", "1ki", "1 Gi", "", "9" * 22, 7, 7.5, -1]
_OTHER_TYPES = ["text", 7, 7.5, True, None, [], {}, ["x"], [{"x": 1}], {"x": 1}, {"x": "y"}]
_ENTRIES: list[dict[str, Any]] = [
    {"a": "b"},
    {"Wrong Key!": "b"},
    {"a/b/c": "b"},
    {"a": _FORM},
    {"a": "x" * 64},
    {"x" * 64: "a"},
    {"a": 7},
]
_NOT_CHANGED = frozenset({"apiVersion", "kind", "status"})
_NOT_WRITTEN = frozenset(
    {"namespace", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}
)
"""Fields that a request names, or that only the server writes and kaigen warns about."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A changed object.

    Attributes:
        kind: apiVersion and kind.
        change: what was changed, in words.
        body: the object.
    """

    kind: str
    change: str
    body: Object


@dataclass(slots=True)
class Mutator:
    """Makes changes of objects.

    Attributes:
        values: scalars that objects have in fields of a name, so that a change may be plausible.
        rng: the source of chance.
    """

    values: Values
    rng: random.Random
    _steps: list[Step] = field(default_factory=list)

    def mutations(self, obj: Object, count: int) -> Iterator[Mutation]:
        """Yield changes of an object: three of four are single ones."""
        singles = steps_of(obj, self.values, self.rng)
        kind = f"{obj['apiVersion']}/{obj['kind']}"
        by_parent: dict[Place, list[Step]] = {}
        for step in singles:
            if isinstance(step[0][-1], str):
                by_parent.setdefault(step[0][:-1], []).append(step)
        couples = [steps for steps in by_parent.values() if len({step[0] for step in steps}) > 1]
        for number in range(count):
            chosen = [self.rng.choice(singles)]
            if number % 4 == 3 and couples:
                first, second = self.rng.sample(self.rng.choice(couples), 2)
                chosen = [first, second] if first[0] != second[0] else [first]
            yield Mutation(
                kind, "; ".join(f"{_dotted(place)}: {what}" for place, what, _ in chosen), applied(obj, chosen)
            )


def applied(obj: Object, steps: Sequence[Step]) -> Object:
    """Return a copy of an object with changes of different fields."""
    changed = copy.deepcopy(obj)
    for place, _, change in steps:
        parent: Any = changed
        for key in place[:-1]:
            parent = parent[key]
        change(parent, place[-1])
    return changed


def steps_of(obj: Object, values: Values, rng: random.Random) -> list[Step]:
    """Return every single change of an object."""
    ref = index()["kinds"][obj["kind"]][obj["apiVersion"]]["ref"]
    return list(_steps(_node(ref), obj, (), values, rng))


def _node(node: Any) -> Any:
    while isinstance(node, str) and "/" in node:
        node = definition(node, DEFAULT_VERSION)
    return node


def _steps(node: Any, value: Any, place: Place, values: Values, rng: random.Random) -> Iterator[Step]:
    node = _node(node)
    if place:
        yield from _of_value(node, value, place, values, rng)
    fields = node.get("p") if isinstance(node, dict) else None
    if isinstance(value, dict):
        for key, child in value.items():
            if not place and key in _NOT_CHANGED:
                continue
            inner = fields.get(key, "any") if fields is not None else node["m"] if _has(node, "m") else "any"
            if inner != "any" and key not in _NOT_WRITTEN:
                yield from _steps(inner, child, (*place, key), values, rng)
        if fields is not None:
            yield (*place, "unknownField"), "added", _setter("x")
            for key in sorted(fields.keys() - value.keys() - _NOT_WRITTEN - (set() if place else _NOT_CHANGED)):
                for example in _examples(fields[key], key, values, rng):
                    yield (*place, key), f"added as {_short(example)}", _setter(example)
    elif isinstance(value, list) and _has(node, "l"):
        for number, child in enumerate(value):
            yield from _steps(node["l"], child, (*place, number), values, rng)


def _has(node: Any, key: str) -> bool:
    return isinstance(node, dict) and key in node


def _of_value(node: Any, value: Any, place: Place, values: Values, rng: random.Random) -> Iterator[Step]:
    """Yield the changes of a value that is there."""
    name = str(place[-1]) if isinstance(place[-1], str) else str(place[-2])
    if not isinstance(place[-1], int):
        yield place, "renamed", _rename
    yield place, "removed", _remove
    others = [other for other in _OTHER_TYPES if type(other) is not type(value)]
    for other in rng.sample(others, 3):
        yield place, f"set to {_short(other)}", _setter(other)
    if isinstance(value, list):
        yield place, "emptied", _setter([])
        if value:
            yield place, "with the last item twice", _setter([*value, value[-1]])
            yield place, "reversed", _setter(value[::-1])
        yield (
            place,
            "with another item",
            _setter([*value, *_examples(node["l"], name, values, rng)[:1]] if _has(node, "l") else []),
        )
    elif isinstance(value, dict):
        yield place, "emptied", _setter({})
        if _has(node, "m"):
            for entry in _ENTRIES:
                yield place, f"with {_short(entry)}", _setter(value | entry)
    else:
        if isinstance(value, str):
            for changed in (f"{value} ", value.upper(), f"-{value}"):
                yield place, f"set to {_short(changed)}", _setter(changed)
        for example in _examples(node, name, values, rng):
            if example != value:
                yield place, f"set to {_short(example)}", _setter(example)


def _examples(node: Any, name: str, values: Values, rng: random.Random) -> list[Any]:
    """Return some values of a node, right or wrong."""
    node = _node(node)
    atom = node.get("t") or ("s" if "enum" in node else "") if isinstance(node, dict) else node
    if _has(node, "p") or _has(node, "m") or _has(node, "l"):
        return [_sample(node, name, values, rng, 0) for _ in range(4)] + [[] if _has(node, "l") else {}]
    known = values.get(name, [])
    found: list[Any] = rng.sample(known, min(4, len(known)))
    if _has(node, "enum"):
        found += node["enum"]
    if atom == "b":
        return [True, False]
    if atom in ("i", "i32", "n"):
        least, most = (node.get("min"), node.get("max")) if isinstance(node, dict) else (None, None)
        limits = [int(least), int(least) - 1] if least is not None else []
        limits += [int(most), int(most) + 1] if most is not None else []
        return [*found, *_COUNTS, *limits]
    if atom in ("q", "qi", "amount"):
        return [*found, *_AMOUNTS]
    if atom in ("is", "percent", "port"):
        return [*found, *rng.sample(_COUNTS, 4), "10%", "110%", "-1%", *rng.sample(_TEXTS, 3)]
    if atom == "any":
        return [7, "x", {}, []]
    return [*found, *rng.sample(_TEXTS, 8)]


def _sample(node: Any, name: str, values: Values, rng: random.Random, depth: int) -> Any:
    """Return one plausible value of a node."""
    node = _node(node)
    if _has(node, "p"):
        members = list(node["u"][1]) if "u" in node else []
        chosen = [rng.choice(members)] if members else []
        keys = [*node.get("r", ()), *chosen]
        free = [key for key in node["p"] if key not in keys and key not in members]
        keys += rng.sample(free, min(len(free), rng.choice([0, 1, 2]))) if depth < 4 else []
        return {key: _sample(node["p"][key], key, values, rng, depth + 1) for key in dict.fromkeys(keys)}
    if _has(node, "m"):
        return {rng.choice(["a", "example.com/a"]): _sample(node["m"], name, values, rng, depth + 1)}
    if _has(node, "l"):
        return [
            _sample(node["l"], name, values, rng, depth + 1) for _ in range(rng.choice([1, 1, 2]) if depth < 4 else 0)
        ]
    if _has(node, "enum"):
        return rng.choice(node["enum"])
    known = values.get(name)
    if known and rng.random() < 0.8:
        return rng.choice(known)
    return rng.choice(_examples(node, name, values, rng))


def _setter(value: Any) -> Callable[[Any, str | int], None]:
    def change(parent: Any, key: str | int) -> None:
        parent[key] = copy.deepcopy(value)

    return change


def _remove(parent: Any, key: str | int) -> None:
    del parent[key]


def _rename(parent: Any, key: str | int) -> None:
    parent[f"{key}x"] = parent.pop(key)


def _dotted(place: Place) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else f"{text[:77]}..."


@cache
def _written() -> tuple[str, ...]:
    """Return objects as JSON: the examples of the unit tests, and what kaigen makes of each case, where it has a field
    that no object before has."""
    found: list[str] = []
    seen: set[tuple[str, ...]] = set()
    compiled = [each.body for case in cases().values() for app in case.compile().apps for each in app.objects]
    for body in [*objects(), *compiled]:
        fields = set(_fields(body, (body["kind"],)))
        if fields - seen:
            seen |= fields
            found.append(json.dumps(body))
    return tuple(found)


def bases() -> list[Object]:
    """Return valid objects of every kind, with every field that some object has."""
    return [json.loads(text) for text in _written()]


def _fields(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, child in value.items():
            if place[-1] not in ("labels", "annotations", "data", "matchLabels"):
                yield (*place, key)
                yield from _fields(child, (*place, key))
    elif isinstance(value, list):
        for child in value:
            yield from _fields(child, place)


def values_of(bodies: Sequence[Object]) -> Values:
    """Return the scalars of objects by the name of their field, without duplicates."""
    found: dict[str, dict[str, Any]] = {}

    def collect(value: Any, name: str) -> None:
        if isinstance(value, dict):
            for key, child in value.items():
                collect(child, key)
        elif isinstance(value, list):
            for child in value:
                collect(child, name)
        else:
            found.setdefault(name, {})[json.dumps(value)] = value

    for body in bodies:
        collect(body, "")
    return {name: [values[key] for key in sorted(values)] for name, values in found.items()}
