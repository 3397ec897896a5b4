"""Different values for every setting of an app, generated from its schema and default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.app import App
from kaigen.compile.expressions import Setting

STRINGS = ("other", " {{ .Values.x }} 100%s\n  'two' \"lines\"\n", "yes", "0123", "naïve: # <カイゲン> &")
"""Replacement strings, used in turn: a plain one, and some that a careless template would break."""


def filled(app: App) -> dict[str, Any]:
    """Return a value for every setting that differs from its default; optional ones are set."""
    return _nested({setting: _other(setting.schema, setting.default, n) for n, setting in _numbered(app)})


def emptied(app: App) -> dict[str, Any]:
    """Return the emptiest value of every setting that its schema allows: no text, no items, no entries."""
    return _nested({setting: _least(setting.schema, setting.default) for setting in app.settings})


def _numbered(app: App) -> list[tuple[int, Setting]]:
    return list(enumerate(app.settings))


def _nested(values: Mapping[Setting, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for setting, value in values.items():
        here = tree
        *parents, last = setting.keys
        for key in parents:
            here = here.setdefault(key, {})
        here[last] = value
    return tree


def _types(schema: Mapping[str, Any]) -> set[str]:
    named = schema.get("type", "")
    return {named} if isinstance(named, str) else set(named)


def _other(schema: Mapping[str, Any], default: Any, turn: int) -> Any:
    if "enum" in schema:
        return next((value for value in reversed(schema["enum"]) if value != default), default)
    if "anyOf" in schema:
        return 33 + turn if isinstance(default, str) else schema["anyOf"][-1]["const"]
    types = _types(schema)
    if "pattern" in schema:
        return "777Gi" if turn % 2 else 7
    if types == {"boolean"}:
        return not default
    if types == {"integer"}:
        more = default + 11
        return more if more <= schema.get("maximum", more) else default - 11
    if types == {"number"}:
        return default / 4 + 0.0625
    if types == {"integer", "string"}:
        return 33 + turn if isinstance(default, int) else f"{33 + turn}%"
    if "string" in types and len(types) > 1:
        return (STRINGS[turn % len(STRINGS)], 12345678, -0.25, 1e-7, not default)[turn % 5]
    if types == {"string"}:
        return STRINGS[turn % len(STRINGS)]
    if types == {"array"}:
        item = schema.get("items", {})
        if "enum" in item:
            return [item["enum"][-1], item["enum"][0]]
        return [_other(item, None, turn + n) for n in range(3)]
    assert types == {"object"}, schema
    return _other_mapping(schema, default or {}, turn)


def _other_mapping(schema: Mapping[str, Any], default: Mapping[str, Any], turn: int) -> dict[str, Any]:
    """Return a mapping without the default's first entry, with the others changed and new ones added."""
    required = set(schema.get("required", ()))
    changed: dict[str, Any] = {}
    for number, (key, value) in enumerate(default.items()):
        inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
        if number == 0 and key not in required and "properties" not in schema:
            changed[key] = None
        else:
            changed[key] = _other(inner, value, turn + 1) if isinstance(inner, Mapping) else _junk(turn)
    for key, inner in schema.get("properties", {}).items():
        changed.setdefault(key, _other(inner, None, turn))
    added = schema.get("additionalProperties", True)
    if added is True:
        changed |= {"new": _junk(turn), "list": [_junk(turn + 1), 1.5, True], "example.com/a": {"b": "c"}}
    elif isinstance(added, Mapping):
        changed |= {"new": _other(added, None, turn + 1), "example.com/new": _other(added, None, turn + 2)}
    return changed


def _junk(turn: int) -> Any:
    return ({"deep": {"er": STRINGS[turn % len(STRINGS)], "list": [[], {}]}}, STRINGS[turn % len(STRINGS)], 3)[turn % 3]


def _least(schema: Mapping[str, Any], default: Any) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _least(schema["anyOf"][0], default)
    types = _types(schema)
    if "pattern" in schema:
        return 0
    if types == {"boolean"}:
        return False
    if types in ({"integer"}, {"number"}):
        return schema.get("minimum", 0)
    if "string" in types:
        return "" if not schema.get("minLength") else "-"
    if types == {"array"}:
        return [_least(schema["items"], None)] * schema.get("minItems", 0)
    required = set(schema.get("required", ()))
    return {
        key: _least(schema.get("properties", {}).get(key, {"type": "string"}), value) if key in required else None
        for key, value in (default or {}).items()
    }
