"""Fields that are promoted from one environment to the next: what a spec runs and downloads.

A field is promotable when its type carries the marker `PROMOTABLE`, here or in a branch of a union.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import dotted_path
from kaigen.kinds.block import Block, Later, document_name

Need = Literal["commit", "digest", ""]

SHORT = "ref"
"""Field of an image block with the reference; an image may also be the reference itself."""


class Promotable(Struct, frozen=True):
    """Marker of the type of a promotable field.

    Attributes:
        needs: form of an immutable value; empty when every value is immutable.
    """

    needs: Need = ""


REVISION = Promotable("commit")
IMAGE = Promotable("digest")
NAME = Promotable()


class Found(Struct, frozen=True):
    """A promotable field of a document.

    Attributes:
        path: the field.
        value: its value.
        marker: its marker.
    """

    path: FieldPath
    value: str
    marker: Promotable

    @property
    def name(self) -> str:
        """Dotted name in pins files; the same for both forms of an image."""
        return dotted_path(self.path[:-1] if self.path[-1] == SHORT else self.path)


def promotable_values(block: Block) -> list[Found]:
    """Return every promotable field of a document with a value, including defaults."""
    return [*_values(block, ())]


def _values(node: Any, path: FieldPath) -> Iterator[Found]:
    if isinstance(node, Block):
        for name, alias, marker in _fields(type(node)):
            value = getattr(node, name)
            if marker is not None and isinstance(value, str):
                yield Found((*path, alias), value, marker)
            else:
                yield from _values(value, (*path, alias))
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _values(item, (*path, index))
    elif isinstance(node, dict):
        for key, item in node.items():
            if isinstance(item, Block):
                yield from _values(item, (*path, key))


@cache
def _fields(model: type[Block]) -> tuple[tuple[str, str, Promotable | None], ...]:
    return tuple((name, document_name(model, name), _marker(kind)) for name, kind in _types(model).items())


@cache
def _types(model: type[Block]) -> dict[str, Any]:
    hints = get_type_hints(model, include_extras=True)
    return {name: hints[name] for name in model.__struct_fields__}


def _marker(annotation: Any) -> Promotable | None:
    """Return the marker of a type or of its arguments, without those of other blocks."""
    parts = get_args(annotation)
    for part in parts:
        found = part if isinstance(part, Promotable) else _marker(part)
        if found is not None:
            return found
    return None


@cache
def promotable_fields(model: type[Block]) -> frozenset[str]:
    """Return the dotted names of a model's promotable fields, with `[]` for list entries and `*` for keys of maps."""
    return frozenset(_names(model, lambda _, marker: marker is not None))


@cache
def fields_named(model: type[Block], names: frozenset[str]) -> frozenset[str]:
    """Return the dotted names of a model's fields that end in one of these names, as for promotable ones."""
    return frozenset(_names(model, lambda name, _: name in names))


def is_promotable(model: type[Block], name: str) -> bool:
    """Return whether a dotted name is that of a promotable field."""
    steps = re.sub(r"\[[0-9]+\]", "[]", name).split(".")
    return any(
        len(field) == len(steps) and all(known in ("*", step) for known, step in zip(field, steps, strict=True))
        for field in (known.split(".") for known in promotable_fields(model))
    )


def _names(
    model: type[Block],
    chosen: Callable[[str, Promotable | None], bool],
    place: str = "",
    above: tuple[type[Block], ...] = (),
) -> Iterator[str]:
    for name, alias, marker in _fields(model):
        here = f"{place}.{alias}".strip(".")
        if chosen(alias, marker):
            yield here
        for inner, listed in _blocks(_types(model)[name], ""):
            if inner not in above:
                yield from _names(inner, chosen, here + listed, (*above, model))


def _blocks(annotation: Any, listed: str) -> Iterator[tuple[type[Block], str]]:
    if isinstance(annotation, Later):
        annotation = annotation.block()
    if isinstance(annotation, type) and issubclass(annotation, Block):
        yield annotation, listed
    origin = getattr(annotation, "__origin__", None)
    inner = f"{listed}[]" if origin is list else f"{listed}.*" if origin is dict else listed
    for part in get_args(annotation):
        yield from _blocks(part, inner)
