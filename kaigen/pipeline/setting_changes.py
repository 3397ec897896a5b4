"""Changes of kaigen.yaml that a reviewer must see, whatever they do to the objects."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import UnionType

import msgspec
from msgspec import Struct

from kaigen.config.settings import Config
from kaigen.core.credentials import redact
from kaigen.core.json_types import Json
from kaigen.diff.formatting import clip, value
from kaigen.diff.model import ABSENT, Absent
from kaigen.pipeline.setting_decisions import DECISIONS, UNKNOWN, Value

_LONG = 10_000
_MOST = 200
"""Most characters of a setting that are searched for credentials, and that are shown."""


def dangerous_settings(before: Mapping[str, Config], configs: Sequence[Config]) -> list[str]:
    """Return the settings whose change may weaken what protects a cluster, with their old and new values.

    Args:
        before: the settings before the change, by environment; a new environment is compared with the first of them.
        configs: the current settings of each environment.
    """
    found: dict[str, list[str]] = {}
    for config in configs:
        was = before.get(config.environment) or next(iter(before.values()), Config())
        for text in _dangers(was, config):
            found.setdefault(text, []).append(config.environment)
    return [
        text if len(names) == len(configs) else f"{text} (environment {', '.join(names)})"
        for text, names in found.items()
    ]


def leaves(model: type[Struct], path: str = "") -> Iterator[str]:
    """Yield the path of every setting below a model that the table decides about, or must decide about."""
    for name, nested in _fields(model).items():
        place = f"{path}{name}"
        inside = f"{place}."
        has_inside = nested is not None and any(known.startswith(inside) for known in DECISIONS)
        if not has_inside or place in DECISIONS:
            yield place
        if nested is not None and has_inside:
            yield from leaves(nested, inside)


@cache
def _fields(model: type[Struct]) -> dict[str, type[Struct] | None]:
    """Return the fields of a model, each with the model of its block; None for a field that is not a block."""
    hints = typing.get_type_hints(model)
    return {each.name: _block(hints[each.name]) for each in msgspec.structs.fields(model)}


def _block(hint: object) -> type[Struct] | None:
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, UnionType) else (hint,)
    blocks = [each for each in options if isinstance(each, type) and issubclass(each, Struct)]
    return blocks[0] if len(blocks) == 1 else None


def _dangers(before: Config, now: Config) -> Iterator[str]:
    for path in leaves(Config):
        old, new = _at(before, path), _at(now, path)
        if old == new or _is_decided_above(path, before, now):
            continue
        decision = DECISIONS.get(path, UNKNOWN)
        for key, was, is_ in decision.judge(old, new):
            name = ".".join(part for part in (decision.name or _written_path(path), key) if part)
            yield f"{name} is {_show_setting(is_)} instead of {_show_setting(was)}"


def _is_decided_above(path: str, before: Config, now: Config) -> bool:
    """Return whether a block with a decision of its own, in which a setting is, is missing on one side."""
    parts = path.split(".")
    above = [".".join(parts[:length]) for length in range(1, len(parts))]
    return any(None in (_at(before, each), _at(now, each)) for each in above if each in DECISIONS)


def _at(config: Config, path: str) -> Value:
    """Return a setting; that of the defaults of its block, or None, where the block is missing."""
    found: object = config
    model: type[Struct] = Config
    for name in path.split("."):
        nested = _fields(model)[name]
        found = _default(model, name) if found is None else getattr(found, name)
        model = nested or model
    return found


def _default(model: type[Struct], name: str) -> Value:
    for each in msgspec.structs.fields(model):
        if each.name == name and each.default is not msgspec.NODEFAULT:
            return typing.cast("Value", each.default)
        if each.name == name and each.default_factory is not msgspec.NODEFAULT:
            return typing.cast("Value", each.default_factory())
    return None


def _written_path(path: str) -> str:
    """Return a path as in kaigen.yaml."""
    parts = []
    for name in path.split("."):
        first, *rest = name.split("_")
        parts.append(first + "".join(word.capitalize() for word in rest))
    return ".".join(parts)


def _show_setting(setting: Value) -> str:
    """Return a setting on one line, without credentials and defaults."""
    plain = {} if isinstance(setting, Struct) else msgspec.to_builtins(setting)
    if isinstance(setting, Struct):
        fields = {name: getattr(setting, name) for name in setting.__struct_fields__}
        given = {name: item for name, item in fields.items() if item != _default(type(setting), name)}
        plain = {_written_path(name): msgspec.to_builtins(item) for name, item in given.items()}
    unset = plain in (None, "", (), [], {}) and not isinstance(setting, Struct)
    shown: Json | Absent = ABSENT if unset else plain
    return clip(redact(value(shown, _LONG)), _MOST)
