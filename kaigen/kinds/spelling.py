"""Old spellings of fields: a document may have them, and is read as if it had the present ones.

A block declares them: `formerly` are fields that have moved, `text_means` is the field of a block in whose place a text
was allowed. Nothing else in kaigen knows the old spellings, nor do the schemas of editors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields, replace

from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import Block, Later
from kaigen.kinds.entry import OWN_SYSTEM

if TYPE_CHECKING:
    from kaigen.kinds.entry import KindEntry
    from kaigen.yaml.document import Document


class Move(Struct, frozen=True):
    """A value that is written in an old place.

    Attributes:
        old: the path where it is.
        new: the path where it belongs.
    """

    old: FieldPath
    new: FieldPath


def old_spellings(data: Any, model: type[Block]) -> list[Move]:
    """Return the values of a document, or of a patch of it, that are in an old place, in the order of the fields.

    A field that is written in both spellings is in none of them: validation reports the old one as unknown.

    Args:
        data: plain data.
        model: of the whole document.
    """
    return [*_in_block(data, model, ())]


def respell(data: Any, moves: list[Move]) -> Any:
    """Return a copy of plain data with values moved; the same data without moves."""
    if not moves:
        return data
    copy = _copy(data)
    values = [_take(copy, move.old) for move in moves]
    for move, value in zip(moves, values, strict=True):
        _put(copy, move.new, value)
    return copy


def present_document(document: Document, entry: KindEntry) -> Document:
    """Return a document in the present spelling; see `present_spelling`."""
    return present_spelling(document, entry)[0]


def present_spelling(document: Document, entry: KindEntry) -> tuple[Document, list[Move]]:
    """Return a document of kaigen's own kinds in the present spelling, whose values keep their positions, and what has
    moved.

    Args:
        document: a document as it was written.
        entry: its kind.
    """
    moves = old_spellings(document.data, entry.model()) if entry.system == OWN_SYSTEM else []
    if not moves:
        return document, moves
    written = {move.new: move.old for move in moves}
    return replace(document, data=respell(document.data, moves), written=written), moves


def _in_block(data: Any, model: type[Block], path: FieldPath) -> Iterator[Move]:
    if not isinstance(data, dict):
        return
    for name, target in model.formerly.items():
        if not isinstance(data.get(name), str):
            continue
        there = data.get(target[0])
        if there is None or (len(target) > 1 and isinstance(there, str)):
            means = () if len(target) > 1 else (_text_of(model, target[0]),)
            yield Move((*path, name), (*path, *target, *means))
    known = _blocks_of(model)
    for name, value in data.items():
        if name in known and value is not None:
            yield from _in_value(value, known[name], (*path, name))


def _in_value(value: Any, hint: Any, path: FieldPath) -> Iterator[Move]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from _in_value(value, arguments[0], path)
    elif origin in {Union, UnionType}:
        if isinstance(value, str) and str in map(_plain, arguments):
            return
        for option in arguments:
            yield from _in_value(value, option, path)
    elif origin is list and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _in_value(item, arguments[0], (*path, index))
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            yield from _in_value(item, arguments[1], (*path, key))
    elif isinstance(hint, Later):
        yield from _in_value(value, hint.block(), path)
    elif isinstance(hint, type) and issubclass(hint, Block):
        if isinstance(value, str) and hint.text_means:
            yield Move(path, (*path, hint.text_means))
        else:
            yield from _in_block(value, hint, path)


@cache
def _blocks_of(model: type[Block]) -> dict[str, Any]:
    """Return the types of fields that have blocks, by their names in documents."""
    return {item.encode_name: item.type for item in fields(model) if _has_blocks(item.type)}


def _has_blocks(hint: Any) -> bool:
    if isinstance(hint, Later):
        return True
    return any(map(_has_blocks, get_args(hint))) or (isinstance(hint, type) and issubclass(hint, Block))


def _text_of(model: type[Block], name: str) -> str:
    """Return the field that a text in place of a field's block means."""
    (block,) = (each for each in map(_plain, _options(_blocks_of(model)[name])) if hasattr(each, "text_means"))
    return str(block.text_means)


def _options(hint: Any) -> tuple[Any, ...]:
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_args(plain) if get_origin(plain) in {Union, UnionType} else (plain,)


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _copy(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _copy(value) for key, value in data.items()}
    return [*map(_copy, data)] if isinstance(data, list) else data


def _take(data: Any, path: FieldPath) -> Any:
    """Return the value at a path. A member of a mapping is removed; an item of a list keeps its place."""
    *before, last = path
    for step in before:
        data = data[step]
    value = data[last]
    if isinstance(last, int):
        data[last] = None
    else:
        del data[last]
    return value


def _put(data: Any, path: FieldPath, value: Any) -> None:
    """Set a value at a path, whose blocks may be new."""
    *before, last = path
    for step in before:
        if isinstance(step, str):
            data.setdefault(step, {})
        elif data[step] is None:
            data[step] = {}
        data = data[step]
    data[last] = value
