"""Conversion between frozen dataclasses and JSON data, driven by their type annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_data(value: Any) -> Any:
    """Return a dataclass, with everything in it, as JSON data."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_data(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_data(item) for item in value]
    return value


def from_data(cls: type[T], data: Mapping[str, Any]) -> T:
    """Return a dataclass from the JSON data of its fields; fields that are left out get their defaults.

    Raises:
        TypeError: the data does not fit the class.
    """
    nested: dict[str, Any] = _nested(cls)  # type: ignore[arg-type]  # a class is hashable
    return cls(
        **{name: _value(nested[name], item) if name in nested else item for name, item in data.items()}
    )


@cache
def _nested(cls: type[Any]) -> dict[str, Any]:
    """The annotations of the fields whose JSON data differs from their value."""
    return {name: hint for name, hint in get_type_hints(cls).items() if _differs(hint)}


def _differs(hint: Any) -> bool:
    """Whether a value of this type differs from its JSON data."""
    if is_dataclass(hint) or get_origin(hint) is tuple:
        return True
    if get_origin(hint) is Mapping:
        return _differs(get_args(hint)[1])
    return _differs(_given(hint)) if _given(hint) is not None else False


def _given(hint: Any) -> Any:
    """The type of an optional value when it is given; None for any other annotation."""
    arguments = get_args(hint)
    given = [each for each in arguments if each is not NoneType]
    optional = get_origin(hint) in (UnionType, Union) and len(given) == 1 < len(arguments)
    return given[0] if optional else None


def _value(hint: Any, data: Any) -> Any:
    if not _differs(hint):
        return data
    if is_dataclass(hint):
        return from_data(hint, data)  # type: ignore[arg-type]  # a class, not an instance
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], item) for item in data)
    if get_origin(hint) is Mapping:
        return {key: _value(get_args(hint)[1], item) for key, item in data.items()}
    return None if data is None else _value(_given(hint), data)
