"""Settings overridden at render time: `--set APP.key=value`, values files, and `values` in kaigen.yaml.

They mean what they would mean to Helm: mappings are merged, anything else is replaced, null takes a key away,
and the result is held against the settings' schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kaigen.compile.app import App, Json
from kaigen.load.diagnostics import Diagnostic, InputError

Overrides = Mapping[str, Mapping[str, Any]]
"""Values by app, `NAME` or `NAMESPACE/NAME`."""

_PART = re.compile(r"((?:[^.\\=\[]|\\.)+)|\[([0-9]+)\]")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
LIST_MAX = 10_000


def parse_assignment(text: str) -> dict[str, dict[str, Any]]:
    """One `--set APP.key=value`: dots part keys (`\\.` is a dot), `[0]` an entry of a list, `{a,b}` a list.

    Raises:
        InputError: when it is none.
    """
    target, equals, value = _split(text)
    parts = _keys(target) if equals else []
    if len(parts) < 2 or not isinstance(parts[0], str):
        raise InputError.of(
            "KG0704",
            f"`--set {text}` is not of the form APP.key=value",
            hint="for example `--set qwen.storage.size=20Gi`",
        )
    result: Any = _value(value)
    for part in reversed(parts[1:]):
        if isinstance(part, int):
            if part > LIST_MAX:
                raise InputError.of("KG0704", f"`--set {text}`: index {part} is too large")
            result = _Sparse({part: result})
        else:
            result = {part: result}
    return {str(parts[0]): result}


class _Sparse(dict[int, Any]):
    """Entries of a list by index; laid over the list that is there."""


def _split(text: str) -> tuple[str, str, str]:
    match = re.match(r"((?:[^=\\]|\\.)*)(=)(.*)", text, re.DOTALL)
    return (match[1], match[2], match[3]) if match else (text, "", "")


def _keys(target: str) -> list[str | int]:
    parts: list[str | int] = []
    position = 0
    while position < len(target):
        match = _PART.match(target, position)
        if match is None:
            return []
        parts.append(re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else int(match[2]))
        position = match.end()
        if target[position : position + 1] == ".":
            position += 1
            if position == len(target):
                return []
    return parts


def _value(text: str) -> Any:
    if text.startswith("{") and text.endswith("}"):
        inner = text[1:-1]
        return [_value(part) for part in re.split(r"(?<!\\),", inner)] if inner else []
    if text in {"true", "false"}:
        return text == "true"
    if text == "null":
        return None
    if _INTEGER.fullmatch(text) and abs(int(text)) < 2**63:
        return int(text)
    return re.sub(r"\\(.)", r"\1", text)


def _lay(base: Any, over: Any) -> Any:
    """`over` laid on `base` as Helm does it, and entries of a list by index."""
    if isinstance(over, _Sparse):
        entries = list(base) if isinstance(base, list) else []
        for index, value in over.items():
            entries += [None] * (index + 1 - len(entries))
            entries[index] = _lay(entries[index], value)
        return entries
    if isinstance(over, dict):
        start = dict(base) if isinstance(base, Mapping) else {}
        for key, value in over.items():
            if value is None:
                start.pop(key, None)
            else:
                start[key] = _lay(start.get(key), value)
        return start
    return over


def effective_values(app: App, layers: Sequence[Overrides]) -> dict[str, Json]:
    """The app's settings with every layer laid on, later ones on top. They are not yet checked."""
    values: Any = app.default_values()
    for layer in layers:
        for key in (app.name, f"{app.namespace}/{app.name}"):
            if key in layer:
                values = _lay(values, layer[key])
    return values  # type: ignore[no-any-return]


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
    return found


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
