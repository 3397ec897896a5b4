"""JSON Schemas of blocks, which accept the same data as the models.

Own code: msgspec's schemas sort the values of a `Literal`, allow null, and know nothing of `Choice`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from inspect import cleandoc
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from msgspec import Meta
from msgspec.json import schema
from msgspec.structs import fields

from kaigen.core.json_types import FieldPath, Json, JsonObject
from kaigen.kinds.base import matches
from kaigen.kinds.block import Block, Choice, Later, default_of, read_block
from kaigen.regex.keyword import pattern_keyword

Schema = dict[str, Any]

_PLAIN: Mapping[Any, Schema] = {
    Any: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}

_LIMITS = {
    "string": {"pattern": "pattern", "min_length": "minLength", "max_length": "maxLength"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
    "integer": {"ge": "minimum", "le": "maximum"},
    "number": {"ge": "minimum", "le": "maximum"},
}
"""Keywords of JSON Schema for the constraints of `Meta`, by type."""


@cache
def block_schema(model: type[Block]) -> Schema:
    """Return the closed JSON Schema (2020-12) of a block.

    Raises:
        TypeError: the block has a type that msgspec does not support.
    """
    builder = _Builder()
    own = builder.block(model)
    return {**({"$defs": builder.definitions} if builder.definitions else {}), **own}


def violations(model: type[Block], data: object) -> Iterator[ValidationError]:
    """Return what is wrong with data that should be a block."""
    found: Iterator[ValidationError] = _Validator(block_schema(model)).iter_errors(data)
    return found


def broken_rules(model: type[Block], data: object) -> list[tuple[FieldPath, str]]:
    """Return the place and text of each error that a model finds in data, those of its own code included.

    Each block is read alone, because msgspec stops at the first error, and a block that is imported later does not
    know where in the document it is.
    """
    try:
        read_block(model, data)
    except msgspec.ValidationError as error:
        inner = list(_errors_inside(model, data)) if isinstance(data, dict) else []
        return inner or [_place_and_text(error)]
    return []


def _errors_inside(model: type[Block], data: JsonObject) -> Iterator[tuple[FieldPath, str]]:
    hints = get_type_hints(model, include_extras=True)
    for item in fields(model):
        if item.encode_name in data:
            for path, text in _errors_of(hints[item.name], data[item.encode_name]):
                yield (item.encode_name, *path), text


def _errors_of(hint: Any, data: Json) -> Iterator[tuple[FieldPath, str]]:
    """Yield the errors of the blocks in a value, whatever lists, maps and alternatives they are in."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from _errors_of(arguments[0], data)
    elif origin in {Union, UnionType}:
        options = [option for option in arguments if option is not NoneType]
        if len(options) > 1 and isinstance(data, dict):
            options = [option for option in options if isinstance(option, type) and issubclass(option, Block)]
        if len(options) == 1:
            yield from _errors_of(options[0], data)
    elif origin is list and isinstance(data, list):
        for index, entry in enumerate(data):
            yield from (((index, *path), text) for path, text in _errors_of(arguments[0], entry))
    elif origin is dict and isinstance(data, dict):
        for key, entry in data.items():
            yield from (((key, *path), text) for path, text in _errors_of(arguments[1], entry))
    else:
        block = hint.block() if isinstance(hint, Later) else hint
        if isinstance(block, type) and issubclass(block, Block):
            yield from broken_rules(block, data)


def _place_and_text(error: msgspec.ValidationError) -> tuple[FieldPath, str]:
    text, _, place = str(error).partition(" - at `$")
    # msgspec does not name the key of a map, so the place is the map.
    place = place.partition("[...]")[0]
    steps = re.findall(r"\.([^.\[\]`]+)|\[([0-9]+)\]", place)
    return tuple(int(index) if index else name for name, index in steps), text


class _Builder:
    """Builds the schema of one block, and of those inside it.

    Attributes:
        definitions: schemas of the blocks inside it, by name.
    """

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._names: dict[type[Block], str] = {}

    def block(self, model: type[Block]) -> Schema:
        """Return the schema of a block."""
        hints = get_type_hints(model, include_extras=True)
        properties = {}
        mixins = [base for base in model.__mro__[1:] if "shared" in base.__dict__]
        shared = {name for base in mixins for name in getattr(base, "__struct_fields__", ())}
        items = sorted(fields(model), key=lambda item: item.name in shared)
        for item in items:
            node = properties[item.encode_name] = self._type(hints[item.name])
            default = None if item.required else default_of(item)
            if default is not None and not isinstance(default, Block):
                node["default"] = default
        required = [item.encode_name for item in items if item.required]
        choices = model.exactly_one if issubclass(model, Choice) else ()
        return {
            "description": cleandoc(model.__doc__ or ""),
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            **({"oneOf": [{"required": [name]} for name in choices]} if choices else {}),
            "additionalProperties": False,
        }

    def _type(self, hint: Any) -> Schema:
        """Return the schema of a type. None has none: a field without a value is an error (KG0209)."""
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return _constrained(self._type(arguments[0]), arguments[1:])
        if origin in {Union, UnionType}:
            if any(map(_has_pattern, arguments)) and any(map(_is_container, arguments)):
                raise TypeError(
                    "msgspec crashes on a union of a text with a pattern and a list or map; use `listable_text`"
                )
            options = [self._type(option) for option in arguments if option is not NoneType]
            return options[0] if len(options) == 1 else {"anyOf": options}
        if origin is Literal:
            choice = {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
            return {"type": "string", **choice}
        if origin is list:
            return {"type": "array", "items": self._type(arguments[0])}
        if origin is dict:
            names = {key: value for key, value in self._type(arguments[0]).items() if key != "type"}
            return {
                "type": "object",
                **({"propertyNames": names} if names else {}),
                "additionalProperties": self._type(arguments[1]),
            }
        if isinstance(hint, Later):
            hint = hint.block()
        if isinstance(hint, type) and issubclass(hint, Block):
            return {"$ref": f"#/$defs/{self._define(hint)}"}
        plain = getattr(hint, "json_schema", None) or _PLAIN.get(hint)
        return schema(hint) if plain is None else dict(plain)

    def _define(self, model: type[Block]) -> str:
        """Return the name of a block's definition."""
        name = self._names.get(model)
        if name is None:
            short = model.__name__
            name = f"{model.__module__}.{short}" if short in self.definitions else short
            self._names[model] = name
            self.definitions[name] = {}  # Keeps the order, and ends the recursion of a block in itself.
            self.definitions[name] = self.block(model)
        return name


def _has_pattern(hint: Any) -> bool:
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return any(isinstance(mark, Meta) and mark.pattern is not None for mark in marks)


def _is_container(hint: Any) -> bool:
    return get_origin(get_args(hint)[0] if get_origin(hint) is Annotated else hint) in {list, dict}


def _constrained(node: Schema, marks: Sequence[object]) -> Schema:
    for mark in marks:
        if not isinstance(mark, Meta):
            continue
        kind = node.get("type")
        for name, keyword in _LIMITS.get(kind, {}).items() if isinstance(kind, str) else ():
            value = getattr(mark, name)
            if value is not None:
                node[keyword] = value.replace(r"\Z", "$") if name == "pattern" else value
        if mark.description is not None:
            node["description"] = mark.description
        if mark.examples is not None:
            node["examples"] = list(mark.examples)
        node |= mark.extra_json_schema or {}
    return node


_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": pattern_keyword(matches)},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)
"""Judges as msgspec does: `3.0` is not a whole number, and `$` matches only the end of a text."""
