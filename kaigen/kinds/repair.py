"""Documents with errors, without what is wrong: so that a run also reports what does not depend on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from msgspec import Struct, ValidationError

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.category import Category
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.problem import dotted_path
from kaigen.kinds import block_schema, errors, schema
from kaigen.kinds.block import Block, read_block
from kaigen.kinds.entry import KindEntry
from kaigen.kinds.positioned import Positioned

_MISPLACED = "move "
"""Beginning of the hint of a field that is in the wrong block: what the document means without it is not known."""
_NEEDED = (("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("spec",))
"""What no document can be without."""


class Repaired(Struct, frozen=True):
    """A document without what is wrong with it.

    Attributes:
        base: the document.
        data: the plain data that is left, with misspelled fields under the name that they probably mean.
        dropped: paths of what is not in it.
        renamed: paths of misspelled fields, by the path that they have here.
    """

    base: Positioned
    data: Any
    dropped: tuple[FieldPath, ...]
    renamed: dict[FieldPath, FieldPath]

    def mark(self, path: Sequence[str | int] = (), *, key: bool = False) -> Mark:
        """Return the place of a path, or of the key at its end."""
        return self.base.mark(self._written(path), key=key)

    def raw(self, path: Sequence[str | int]) -> str | None:
        """Return a scalar as it was written."""
        return self.base.raw(self._written(path))

    def _written(self, path: Sequence[str | int]) -> FieldPath:
        for own, written in self.renamed.items():
            if tuple(path[: len(own)]) == own:
                return (*written, *path[len(own) :])
        return tuple(path)

    def sound(self, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Return the diagnostics that do not depend on what is missing: not at it or what contains it, and not about
        a field of its name."""
        places = [dotted_path(path) for path in self.dropped]
        names = [next(step for step in reversed(path) if isinstance(step, str)) for path in self.dropped]
        named = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names) or "(?!)")
        return [
            item
            for item in found
            if not any(_touch(item.path, place) for place in places) and not named.search(f"{item.message} {item.hint}")
        ]


def repair(document: Positioned, entry: KindEntry, found: Sequence[Diagnostic]) -> tuple[Block, Repaired] | None:
    """Return an invalid document without the fields that are wrong, as its kind's model; None if that is not sound.

    A misspelled field gets the name that it probably means. A block that lacks a field, or one of whose fields excludes
    another, is left out. Nothing is left of a document without a name, or with a field in a block that it is not of.

    Args:
        document: plain data with positions.
        entry: its kind.
        found: what validation reported.
    """
    if not isinstance(document.data, dict):
        return None
    data = deepcopy(document.data)
    dropped: list[FieldPath] = []
    renamed: dict[FieldPath, FieldPath] = {}
    violations = [*block_schema.violations(entry.model(), document.data)]
    for item in errors.find_problems(document, schema.document_schema(entry), violations):
        path = item.problem.path
        if item.problem.hint.startswith(_MISPLACED):
            return None
        if item.meant and (parent := _parent(data, path)) is not None and item.meant not in parent:
            parent[item.meant] = parent.pop(str(path[-1]))
            renamed[*path[:-1], item.meant] = path
        else:
            dropped.append(_named(path[:-1] if item.problem.category is Category.MISSING_FIELD else path))
    dropped += [_named(path) for path in _paths_in(document.data, found)]
    if not _drop(dropped, data):
        return None
    rules = [_named(path) for path, _ in block_schema.broken_rules(entry.model(), data)]
    if not _drop(rules, data):
        return None
    dropped += rules
    try:
        block = read_block(entry.model(), data)
    except ValidationError:
        return None
    return block, Repaired(document, data, tuple(dict.fromkeys(dropped)), renamed)


def _drop(paths: Sequence[FieldPath], data: Any) -> bool:
    """Remove fields from plain data; return whether a document can be without them."""
    if any(path in _NEEDED or not path for path in paths):
        return False
    for path in paths:
        if (parent := _parent(data, path)) is not None:
            parent.pop(str(path[-1]))
    return True


def _named(path: FieldPath) -> FieldPath:
    """Return the field of a mapping that a path is in: without an entry of a list, the others would move."""
    first = next((place for place, step in enumerate(path) if isinstance(step, int)), len(path))
    return path[:first]


def _paths_in(data: Any, found: Sequence[Diagnostic]) -> list[FieldPath]:
    """Return the paths of values without a problem of their form: empty ones, and numbers that lose digits."""
    wanted = {item.path for item in found if item.category is not Category.UNKNOWN_FIELD}
    return [path for path in _every_path(data, ()) if dotted_path(path) in wanted]


def _every_path(node: Any, path: FieldPath) -> Iterable[FieldPath]:
    for key, value in node.items() if isinstance(node, dict) else ():
        if value is None or not isinstance(value, dict | list):
            yield (*path, key)
        yield from _every_path(value, (*path, key))


def _parent(data: Any, path: FieldPath) -> dict[str, Any] | None:
    """Return the mapping that has the end of a path as a key; None if a field above was taken out."""
    node = data
    for step in path[:-1]:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            return None
    return node if isinstance(node, dict) and path and path[-1] in node else None


def _touch(path: str, place: str) -> bool:
    """Return whether one of two paths contains the other, or is it."""
    return not path or _is_in(path, place) or _is_in(place, path)


def _is_in(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))
