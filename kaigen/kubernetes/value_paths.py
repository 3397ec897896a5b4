"""Paths through lists and mappings, and the values at their ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import mapping

ALL = "[]"
"""A step of a path: every item of a list."""

VALUES = "{}"
"""A step of a path: every value of a mapping."""

Step = tuple[str, ...]


def steps_of(path: str) -> Step:
    """Return the steps of a dotted path, in which `[]` is every item of a list; none of an empty one."""
    return tuple(step for step in path.replace("[]", ".[]").split(".") if step)


def values_at(
    node: object, steps: Sequence[str], default: str | None = None, at: FieldPath = ()
) -> Iterator[tuple[FieldPath, object]]:
    """Yield the values at the end of a path with their places, or the default where there is none.

    Args:
        node: the value that the path starts at.
        steps: the path.
        default: what a missing value means; None for nothing.
        at: the place of the value that the path starts at.
    """
    if not steps:
        yield at, node
        return
    step, rest = steps[0], steps[1:]
    if step == ALL:
        items = node if isinstance(node, list) else []
        if not items and not rest and default is not None:
            yield at, default
        for number, item in enumerate(items):
            yield from values_at(item, rest, default, (*at, number))
    elif step == VALUES:
        for key, item in mapping(node).items():
            yield from values_at(item, rest, default, (*at, str(key)))
    elif isinstance(node, dict) and node.get(step) is not None:
        yield from values_at(node[step], rest, default, (*at, step))
    elif default is not None and ALL not in rest[:-1]:
        yield at, default
