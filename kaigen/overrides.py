"""Settings overridden at render time: `--set APP.key=value`, values files, and `values` in kaigen.yaml.

They mean what they would mean to Helm: overrides are merged among themselves first, then laid on the defaults;
mappings are merged, anything else is replaced, null takes a default away, and the result is held against the
settings' schema (source: Helm's packages strvals and chart/common/util).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kaigen.compile.app import App, Json
from kaigen.compile.carried import uncarried
from kaigen.load.diagnostics import Diagnostic, InputError

Overrides = Mapping[str, Mapping[str, Any]]
"""Values by app, `NAME` or `NAMESPACE/NAME`."""

INDEX_MAX = 65536
"""Highest index of a list in an assignment, as in Helm."""

_INTEGER = re.compile(r"[-+]?[0-9]+")
_WORDS = {"true": True, "false": False, "null": None}


def parse_assignment(text: str) -> dict[str, dict[str, Any]]:
    """One `--set APP.key=value`, read as Helm reads it.

    Dots part keys (`\\.` is a dot), `[0]` names an entry of a list, `{a,b}` is a list, and a comma begins the
    next assignment (`\\,` is a comma). Whole numbers, `true`, `false` and `null` are what they look like.

    Raises:
        InputError: when it is none.
    """
    try:
        tree = _Assignments(text).tree()
    except ValueError as error:
        raise InputError.of(
            "KG0704",
            f"`--set {text}` is not of the form APP.key=value: {error}",
            hint="for example `--set qwen.storage.size=20Gi`",
        ) from None
    return tree


class _Entries(dict[int, Any]):
    """Entries of a list by index; they are laid over the list that earlier overrides gave."""


class _Assignments:
    """A reader of `--set` texts."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def tree(self) -> dict[str, dict[str, Any]]:
        """All assignments of the text.

        Raises:
            ValueError: it is none.
        """
        tree: dict[str, Any] = {}
        while True:
            self._assign(tree)
            if self._at == len(self._text):
                break
        for app, values in tree.items():
            if not isinstance(values, dict) or isinstance(values, _Entries):
                raise ValueError(f"`{app}` names no setting")
        return tree

    def _until(self, stops: str) -> tuple[str, str]:
        """The text before the next of some characters, unescaped, and that character; `""` at the end."""
        found: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char in stops:
                return "".join(found), char
            if char == "\\":
                char = self._text[self._at : self._at + 1]
                self._at += 1
            found.append(char)
        self._at = min(self._at, len(self._text))
        return "".join(found), ""

    def _assign(self, into: dict[str, Any]) -> None:
        key, stop = self._until("=[,.")
        if not key:
            raise ValueError("a key is missing")
        if stop == "=":
            into[key] = self._value()
        elif stop == ".":
            inner = into.get(key)
            into[key] = inner if isinstance(inner, dict) and not isinstance(inner, _Entries) else {}
            self._assign(into[key])
        elif stop == "[":
            entries = into.get(key)
            into[key] = self._entry(entries if isinstance(entries, _Entries) else _Entries())
        else:
            raise ValueError(f"`{key}` has no value")

    def _entry(self, entries: _Entries) -> _Entries:
        index, stop = self._until("]")
        if not (stop and re.fullmatch("[0-9]{1,9}", index)):
            raise ValueError(f"`[{index}` is no index of a list")
        number = int(index)
        if number > INDEX_MAX:
            raise ValueError(f"index {number} is too large")
        rest, stop = self._until("[.=")
        if rest or not stop:
            raise ValueError(f"`[{index}]{rest}` has no value")
        if stop == "=":
            entries[number] = self._value()
        elif stop == "[":
            inner = entries.get(number)
            entries[number] = self._entry(inner if isinstance(inner, _Entries) else _Entries())
        else:
            inner = entries.get(number)
            entries[number] = inner if isinstance(inner, dict) and not isinstance(inner, _Entries) else {}
            self._assign(entries[number])
        return entries

    def _value(self) -> Any:
        if self._text[self._at : self._at + 1] != "{":
            return _typed(self._until(",")[0])
        self._at += 1
        items = []
        while True:
            item, stop = self._until(",}")
            if not stop:
                raise ValueError("a list must end with `}`")
            items.append(_typed(item))
            if stop == "}":
                if self._text[self._at : self._at + 1] == ",":
                    self._at += 1
                return items


def _typed(text: str) -> Any:
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(text) and (text == "0" or text[0] != "0") and -(2**63) <= int(text) < 2**63:
        return int(text)
    return text


def _merge(base: Any, over: Any) -> Any:
    """An override on top of another: null stays, to take the default away."""
    if isinstance(over, _Entries):
        entries = list(base) if isinstance(base, list) else []
        for index, value in over.items():
            entries += [None] * (index + 1 - len(entries))
            entries[index] = _merge(entries[index], value)
        return entries
    if isinstance(over, Mapping):
        start = dict(base) if isinstance(base, Mapping) else {}
        for key, value in over.items():
            start[key] = _merge(start.get(key), value)
        return start
    return over


def _lay(default: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides on top of the defaults."""
    values = dict(default)
    for key, value in over.items():
        if value is None and key in default:
            del values[key]
        elif isinstance(value, Mapping):
            inner = default.get(key)
            values[key] = _lay(inner if isinstance(inner, Mapping) else {}, value)
        else:
            values[key] = value
    return values


def effective_values(app: App, layers: Sequence[Overrides]) -> dict[str, Json]:
    """The app's settings with every layer laid on, later ones on top. They are not yet checked."""
    merged: Any = {}
    for layer in layers:
        for key in (app.name, f"{app.namespace}/{app.name}"):
            if key in layer:
                merged = _merge(merged, layer[key])
    return _lay(app.default_values(), merged)


def check_values(app: App, values: Mapping[str, Json]) -> list[Diagnostic]:
    """What is wrong with overridden settings, by their schema."""
    from jsonschema import Draft7Validator

    from kaigen.emit.chart import values_schema
    from kaigen.load.paths import dotted
    from kaigen.load.suggest import did_you_mean

    found = []
    for error in Draft7Validator(values_schema(app.settings)).iter_errors(dict(values)):
        path = dotted(error.absolute_path)
        subject = f"{app.name}.{path}" if path else app.name
        if error.validator == "additionalProperties":
            known = list(error.schema.get("properties", {}))
            for name in sorted(set(error.instance) - set(known)):
                setting = f"{subject}.{name}"
                hint = did_you_mean(name, known) or "settings here: " + ", ".join(known)
                found.append(Diagnostic("KG0705", f"`{setting}` is no setting", hint=hint))
        elif error.validator == "required":
            found.append(
                Diagnostic(
                    "KG0705", f"`{subject}`: {error.message}", hint="null takes a setting away; it is needed"
                )
            )
        else:
            found.append(Diagnostic("KG0706", f"`{subject}`: {error.message}"))
    if not found:
        for item in uncarried(values):
            found.append(Diagnostic("KG0706", f"`{app.name}.{dotted(item.path)}`: {item.message}", hint=item.hint))
        for place in _nulls(values, ()):
            message = f"`{app.name}.{dotted(place)}`: there is no default that null could take away"
            found.append(Diagnostic("KG0706", message, hint="delete it"))
    return found


def _nulls(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Nulls in mappings: Helm drops them from a chart's values. In lists it keeps them."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if value is None:
                yield (*path, key)
            else:
                yield from _nulls(value, (*path, key))


def unknown_names(apps: Iterable[tuple[str, str]], layers: Sequence[Overrides]) -> list[Diagnostic]:
    """Overrides of apps that do not exist.

    Args:
        apps: namespace and name of each app.
        layers: the overrides.
    """
    from kaigen.load.suggest import did_you_mean

    every = list(apps)
    known = {form for namespace, name in every for form in (name, f"{namespace}/{name}")}
    wanted = dict.fromkeys(name for layer in layers for name in layer if name not in known)
    listed = ", ".join(sorted(name for _, name in every))
    return [
        Diagnostic(
            "KG0707",
            f"no app `{name}` to override",
            hint=did_you_mean(name, known) or f"apps: {listed or 'none'}",
        )
        for name in wanted
    ]
