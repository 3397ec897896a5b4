"""The fields of a kind that name other apps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from kaigen.kinds.base import AppName
from kaigen.kinds.block import Block, Later, document_name

EACH = "[]"
"""Step of a path for the entries of a list; `*` is that for the keys of a map."""


@cache
def reference_fields(model: type[Block]) -> frozenset[tuple[str, ...]]:
    """Return the fields below `spec` that name an app, as the steps of their paths."""
    return frozenset(each for each in _fields(model, (), ()) if each[0] != "metadata")


def _fields(model: type[Block], at: tuple[str, ...], above: tuple[type[Block], ...]) -> Iterator[tuple[str, ...]]:
    hints = get_type_hints(model, include_extras=True)
    for name in model.__struct_fields__:
        yield from _named(hints[name], (*at, document_name(model, name)), (*above, model))


def _named(annotation: Any, at: tuple[str, ...], above: tuple[type[Block], ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths in a type: of the names of apps, and of those in its blocks."""
    if isinstance(annotation, Later):
        annotation = annotation.block()
    if annotation == AppName:
        yield at
    elif isinstance(annotation, type) and issubclass(annotation, Block):
        if annotation not in above:
            yield from _fields(annotation, at, above)
    elif get_origin(annotation) is dict:
        yield from _named(get_args(annotation)[1], (*at, "*"), above)
    elif get_origin(annotation) is list:
        yield from _named(get_args(annotation)[0], (*at, EACH), above)
    elif get_origin(annotation) is Annotated:
        flat = Annotated[annotation.__origin__, annotation.__metadata__[0]]
        yield from [at] if flat == AppName else _named(annotation.__origin__, at, above)
    else:
        for part in get_args(annotation):
            yield from _named(part, at, above)
