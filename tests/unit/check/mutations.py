"""Small mutations of an object, at every possible place."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]
WRONG = {"a string": "text", "a number": 7, "a list": ["x"], "a mapping": {"x": 1}, "true": True}
DAMAGES = ("a longer name", "nothing", *WRONG)


def places(value: object, path: Place = ()) -> Iterator[Place]:
    """Every place below a value."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, child in value.items():
            yield from places(child, (*path, key))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from places(child, (*path, number))


def place(dotted: str) -> Place:
    """The place that a dotted path names, as in `spec.rules[0].name`."""
    parts = dotted.replace("[", ".[").split(".")
    return tuple(int(part[1:-1]) if part.startswith("[") else part for part in parts)


def at(value: Any, place: Place) -> Any:
    """Return the value at a path."""
    for key in place:
        value = value[key]
    return value


def damaged(obj: dict[str, Any], place: Place, damage: str) -> dict[str, Any] | None:
    """A copy of an object with one place changed; None where the damage does not apply."""
    changed = copy.deepcopy(obj)
    parent, key = at(changed, place[:-1]), place[-1]
    if damage == "a longer name":
        if not isinstance(key, str):
            return None
        parent[f"{key}x"] = parent.pop(key)
    elif damage == "nothing":
        del parent[key]
    else:
        parent[key] = copy.deepcopy(WRONG[damage])
    return changed
