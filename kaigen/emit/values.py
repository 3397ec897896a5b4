"""The settings of an app with overrides applied and checked.

Overrides come from `--set`, values files, and `values` in kaigen.yaml, and behave as in Helm: they are merged with
each other first, then applied to the defaults. Mappings are merged, other values are replaced, null removes a default,
and the result is checked against the schema of the settings (source: Helm's packages strvals and chart/common/util).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft7Validator, ValidationError
from jsonschema.validators import extend

from kaigen.compile.app import App
from kaigen.compile.expressions import Setting
from kaigen.compile.field_expressions import Items, Spread, item_key
from kaigen.compile.helm_values import unsupported_values
from kaigen.config.assignments import merge_overrides
from kaigen.config.value_layers import Layer, Overrides
from kaigen.core.json_types import FieldPath, Json
from kaigen.core.text import describe
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.problem import dotted_path
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.emit.chart import values_schema
from kaigen.emit.chart_helpers import SCHEMAS
from kaigen.kinds.value_texts import TYPES, nearest_form, pattern_text
from kaigen.regex.keyword import pattern_keyword

_CHART_ONLY = {
    "nameOverride": "change `metadata.name` of the spec, or set it when you install the chart",
    "fullnameOverride": "change `metadata.name` of the spec, or set it when you install the chart",
    "enabled": "set it in the parent chart",
    "global": "set `labels`, `annotations` and `registry` in kaigen.yaml, or set it in the parent chart",
}
"""What to do in place of overriding a value that plain manifests do not have."""


def _apply_overrides(default: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults with overrides applied."""
    values = dict(default)
    for key, value in over.items():
        if value is None and key in default:
            del values[key]
        elif isinstance(value, Mapping):
            inner = default.get(key)
            values[key] = _apply_overrides(inner if isinstance(inner, Mapping) else {}, value)
        else:
            values[key] = value
    return values


def effective_values(app: App, layers: Sequence[Overrides]) -> dict[str, Json]:
    """Return the app's settings with all layers applied in order, not yet checked."""
    merged: Any = {}
    for layer in layers:
        for key in (app.name, f"{app.namespace}/{app.name}"):
            if key in layer:
                merged = merge_overrides(merged, layer[key])
    return _apply_overrides(app.default_values(), merged)


def check_values(app: App, values: Mapping[str, Json], layers: Sequence[Overrides] = ()) -> list[Diagnostic]:
    """Return the errors of overridden settings.

    Args:
        app: the app of the settings.
        values: the settings with all overrides applied.
        layers: the overrides, which may know where they are written.
    """
    found = []

    def say(code: str, path: FieldPath, message: str, hint: str = "", *, key: bool = False) -> None:
        mark = _mark(app, layers, path, key=key)
        found.append(Diagnostic(code, f"`{dotted_path((app.name, *path))}`{message}", mark, hint))

    for name in SCHEMAS:
        if name in values:
            say("KG0705", (name,), " is a value of the chart alone", _CHART_ONLY[name], key=True)
    validator = extend(Draft7Validator, {"pattern": pattern_keyword()})  # type: ignore[no-untyped-call]
    schema = json.loads(values_schema(app.settings))
    for error in validator(schema).iter_errors(dict(values)):
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            known = list(error.schema.get("properties", {}))
            for name in sorted(set(error.instance) - set(known)):
                hint = did_you_mean(name, known) or "settings here: " + ", ".join(known)
                say("KG0705", (*path, name), " is not a setting", hint, key=True)
        elif error.validator == "required":
            for name in error.validator_value:
                if name not in error.instance:
                    say("KG0705", (*path, name), " is required", "null removes a setting; give it a value")
        else:
            say("KG0706", path, *_wrong(error))
    if not found:
        for item in unsupported_values(values):
            say("KG0706", tuple(item.path), f": {item.message}", item.hint)
        for place in _nulls(values, ()):
            say("KG0706", place, ": null removes a default, and this setting has none", "delete it")
        names = (app.name, f"{app.namespace}/{app.name}")
        for place, key in _repeated(app, values):
            if any(_reaches(layer.get(name), place) for layer in layers for name in names):
                say("KG0706", place, f": `{key}` is there already", "set it in the spec, or delete it")
    return found


def _wrong(error: ValidationError) -> tuple[str, str]:
    """The message and the hint for an invalid value."""
    value: Any = error.instance
    wanted: Any = error.validator_value
    rule = str(error.validator)
    if rule == "type":
        names = [wanted] if isinstance(wanted, str) else wanted
        types = " or ".join(TYPES.get(name, name) for name in names)
        quote = "string" in names and isinstance(value, int | float)
        return (f" must be {types}, not {describe(value, typed=True)}", "quote it in a values file" if quote else "")
    if rule == "not":
        return f": `{value}` is a label that kaigen or Kubernetes sets", "choose another key"
    if rule == "enum":
        listed = ", ".join(f"`{item}`" for item in wanted)
        return f" must be one of {listed}, not {describe(value, typed=True)}", did_you_mean(
            str(value), map(str, wanted)
        )
    if rule == "pattern":
        return f" must be {pattern_text(wanted)}, not {describe(value, typed=True)}", nearest_form(value, wanted)
    limits = {"min": "at least", "max": "at most"}
    if rule in {"minimum", "maximum"}:
        return f" must be {limits[rule[:3]]} {wanted}, not {value}", ""
    if rule in {"minLength", "maxLength", "minItems", "maxItems"}:
        unit = "characters" if rule.endswith("Length") else "entries"
        return f" has {len(value)} {unit}; it must have {limits[rule[:3]]} {wanted}", ""
    return f": {error.message}", ""


def _repeated(app: App, values: Mapping[str, Json]) -> Iterator[tuple[FieldPath, str]]:
    """Yield path and key of each item of a setting that its list has already, as the chart finds it."""
    found: dict[FieldPath, str] = {}
    for item in app.objects:
        for setting, keys, taken in _lists(item.body):
            known, given = set(taken), setting.within(values)
            for index, each in enumerate(given if isinstance(given, list) else ()):
                key = item_key(each, keys) if isinstance(each, Mapping) else ""
                if key.strip() and key in known:
                    found.setdefault((*setting.keys, index), key)
                known.add(key)
    yield from found.items()


def _lists(tree: object) -> Iterator[tuple[Setting, tuple[str, ...], list[str]]]:
    """Yield each setting with items of a list, the fields that identify an item, and the keys of the fixed ones."""
    if isinstance(tree, Mapping):
        for node in tree.values():
            yield from _lists(node)
    elif isinstance(tree, list | tuple):
        for node in tree:
            yield from _lists(node)
    elif isinstance(tree, Spread):
        yield tree.of, tree.keys, []
    elif isinstance(tree, Items):
        yield from _lists(tree.fixed)
        for setting in (tree.before, tree.after):
            if setting is not None and tree.keys:
                yield setting, tree.keys, tree.taken()


def _nulls(node: Any, path: FieldPath) -> Iterator[FieldPath]:
    """Nulls in mappings, which Helm drops from a chart's values; it keeps nulls in lists."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if value is None:
                yield (*path, key)
            else:
                yield from _nulls(value, (*path, key))


def _mark(app: App, layers: Sequence[Overrides], path: FieldPath, *, key: bool) -> Mark | None:
    """The place of the last override of a setting."""
    for layer in reversed(layers):
        for name in (f"{app.namespace}/{app.name}", app.name):
            if name in layer and _reaches(layer[name], path):
                return layer.place((name, *path), key=key) if isinstance(layer, Layer) else None
    return None


def _reaches(node: Any, path: FieldPath) -> bool:
    for step in path:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def unknown_names(apps: Iterable[tuple[str, str]], layers: Sequence[Overrides]) -> list[Diagnostic]:
    """Return errors for overrides of apps that do not exist.

    Args:
        apps: namespace and name of each app.
        layers: the overrides.
    """
    every = list(apps)
    known = {form for namespace, name in every for form in (name, f"{namespace}/{name}")}
    listed = ", ".join(sorted(name for _, name in every))
    return [
        Diagnostic(
            "KG0707",
            f"no app `{name}` to override",
            layer.place((name,), key=True) if isinstance(layer, Layer) else None,
            did_you_mean(name, known) or f"apps: {listed or 'none'}",
        )
        for layer in layers
        for name in layer
        if name not in known
    ]
