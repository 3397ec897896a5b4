"""Turn pydantic's validation errors into diagnostics with positions, reasons and hints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.field_path import dotted
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kinds import base
from kaigen.kinds.positioned import Positioned, name_of
from kaigen.kinds.schema import branches, deref, entries, field_names, json_schema, walk

if TYPE_CHECKING:
    from pydantic import ValidationError

    from kaigen.kinds.entry import KindEntry

Path = tuple[str | int, ...]

_MEANINGS: dict[str, str] = {
    base.QUANTITY: "a quantity such as `500m`, `2` or `8Gi`",
    base.DURATION: "a duration such as `90s`, `1h30m` or `2d`",
    base.DNS_LABEL: "lower-case letters, digits and dashes, starting and ending with a letter or digit",
    base.DNS_SUBDOMAIN: "lower-case letters, digits, dashes and dots, starting and ending with a letter or digit",
    base.LABEL_KEY: "a label key such as `team` or `example.com/team`",
    base.LABEL_VALUE: "letters, digits, `-`, `_` and `.`, starting and ending with a letter or digit",
    base.ENV_NAME: "letters, digits and underscores, not starting with a digit",
    base.ABSOLUTE_PATH: "an absolute path such as `/output`",
    base.NO_BLANKS: "characters other than whitespace",
    base.RELATIVE_PATH: "a path below the repository, such as `apps/rendered`",
}

_TYPES: dict[str, str] = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}

_UNITS = {
    **{f"{letter}{end}".lower(): letter for letter in ("k", "M", "G", "T", "P") for end in ("", "B")},
    **{f"{letter}i{end}".lower(): f"{letter}i" for letter in "KMGTP" for end in ("", "b")},
}
"""Units as people write them, in lower case, with the unit of a Kubernetes quantity."""

_SPANS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
}

_DEEPEST = 6
"""Number of levels in which the right block of a misplaced field is searched."""


def form_problem(name: str, value: str, pattern: str, examples: Sequence[object] = ()) -> str:
    """Return the message for a text that does not match the pattern of its field.

    Args:
        name: of the field; empty for a key of a map.
        value: the text.
        pattern: regular expression that it must match.
        examples: valid values.
    """
    subject = f"`{name}: {value}`" if name else f"the key `{value}`"
    meaning = _MEANINGS.get(pattern)
    if meaning is None:
        return f"{subject} is not " + (
            f"a value such as `{examples[0]}`" if examples else f"text that matches {pattern}"
        )
    return f"{subject} is not {meaning}" if "such as" in meaning else f"{subject} may contain only {meaning}"


def pattern_text(pattern: str) -> str:
    """Return a description of texts that match a pattern."""
    meaning = _MEANINGS.get(pattern, f"text that matches {pattern}")
    return meaning if "such as" in meaning else f"text of {meaning}"


def nearest_form(value: str, pattern: str) -> str:
    """Return a hint with the text that was probably meant; empty when there is none."""
    meant = ""
    if pattern == base.QUANTITY and (match := re.fullmatch(r"([0-9.]+) *([A-Za-z]+)", value)):
        meant = match[1] + _UNITS[match[2].lower()] if match[2].lower() in _UNITS else ""
    elif pattern == base.DURATION and (match := re.fullmatch(r"([0-9]+) *([A-Za-z]+)", value)):
        meant = match[1] + _SPANS[match[2].lower()] if match[2].lower() in _SPANS else ""
    elif pattern == base.DURATION and value.isdecimal():
        meant = f"{value}s"
    elif pattern == base.DNS_LABEL:
        meant = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")
    elif pattern == base.DNS_SUBDOMAIN:
        meant = re.sub(r"[^a-z0-9.]+", "-", value.lower()).strip("-.")
    elif pattern == base.ENV_NAME:
        meant = re.sub(r"[^A-Za-z0-9_]+", "_", f"_{value}" if value[:1].isdigit() else value)
    return (
        f"did you mean `{meant}`?" if re.search("[A-Za-z0-9]", meant) and re.fullmatch(pattern, meant) else ""
    )


def value_text(value: Any) -> str:
    """Return a wrong value as text for a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text `{value}`" if len(value) <= 60 else f"the text `{value[:57]}…`"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"the number {value}"


def _whole(written: str) -> int | None:
    """Return the whole number that a text means: `1_000`, `1,000`, `1e3`, `3.0`, `007`."""
    if re.fullmatch(r"-?0*[0-9]{1,15}|-?[0-9]{1,3}([_,][0-9]{3}){1,4}", written):
        return int(re.sub("[_,]", "", written))
    if re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?([eE][+]?[0-9])?", written) and float(written).is_integer():
        return int(float(written))
    return None


def _first_sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".")


def explain(document: Positioned, entry: KindEntry, error: ValidationError) -> list[Diagnostic]:
    """Return a diagnostic for each validation error.

    Args:
        document: plain data with positions.
        entry: its kind.
        error: the error of its model.
    """
    return _Explainer(document, entry).explain(error.errors(include_url=False))


class _Explainer:
    """Explains the validation errors of one document."""

    def __init__(self, document: Positioned, entry: KindEntry) -> None:
        self._document = document
        self._entry = entry

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return json_schema(self._entry)

    def explain(self, lines: Sequence[Any]) -> list[Diagnostic]:
        """Return the diagnostics, without those that only follow from another error."""
        placed = [(self._path(line), line) for line in lines]
        unknown = [path for path, line in placed if line["type"] == "extra_forbidden"]
        choices = {path for path, line in placed if line["type"] == "none_of"}
        found = []
        for path, line in placed:
            if line["type"] == "missing":
                if path[:-1] in choices or self._mistyped(path[:-1], (str(path[-1]),), unknown):
                    continue
            elif line["type"] == "none_of" and self._mistyped(path, line["ctx"]["names"], unknown):
                continue
            found.append(self._explain(path, line))
        return found

    def _mistyped(self, block: Path, names: Sequence[str], unknown: Sequence[Path]) -> bool:
        """Return whether an unknown field of a block is one of these with a typo, which is reported already."""
        known = field_names(self._schema, block)
        hints = {f"did you mean `{name}`?" for name in names}
        return any(path[:-1] == block and did_you_mean(str(path[-1]), known) in hints for path in unknown)

    def _path(self, line: Any) -> Path:
        """Return the path of a pydantic location, without union branches and markers of keys."""
        path: list[str | int] = []
        here: Any = self._document.data
        for position, part in enumerate(line["loc"]):
            if part == "[key]":
                continue
            if (isinstance(here, dict) and part in here) or (
                isinstance(here, list) and isinstance(part, int) and part < len(here)
            ):
                here = here[part]
            elif position < len(line["loc"]) - 1 or line["type"] != "missing":
                continue
            path.append(part)
        return tuple(path)

    def _diagnostic(
        self, code: str, message: str, path: Path, hint: str = "", at: Mark | None = None
    ) -> Diagnostic:
        return Diagnostic(code, message, at or self._document.mark(path), hint, path=dotted(path))

    def _explain(self, path: Path, line: Any) -> Diagnostic:
        kind: str = line["type"]
        name, value = name_of(path), line["input"]
        context: Mapping[str, Any] = line.get("ctx", {})
        if kind == "extra_forbidden":
            at = self._document.mark(path, key=True)
            return self._diagnostic(
                "KG0201", f"unknown field `{path[-1]}`", path, self._unknown_hint(path), at
            )
        if kind == "missing":
            return self._diagnostic(
                "KG0203", f"`{name}` is missing", path, self._field_hint(path), self._document.mark(path[:-1])
            )
        if kind == "none_of":
            subject = f"`{name}` {line['msg']}" if name else f"the document {line['msg']}"
            choices = context["names"]
            hint = self._field_hint((*path, choices[0])) if len(choices) == 1 else ""
            return self._diagnostic("KG0206", subject, path, hint, self._document.mark(path, key=True))
        if kind == "many_of":
            at = self._document.mark((*path, context["given"][-1]), key=True)
            return self._diagnostic("KG0207", f"`{name}` {line['msg']}", path, "keep one of them", at)
        if kind == "literal_error":
            known = re.findall(r"'([^']*)'", str(context.get("expected", "")))
            wanted = str(context.get("expected", "")).replace("'", "`")
            text = f"`{value}`" if isinstance(value, str) else value_text(value)
            message = (
                f"`{name}` must be {wanted}, not {text}"
                if len(known) == 1
                else f"{text} is not one of the values of `{name}`: {wanted}"
            )
            return self._diagnostic("KG0205", message, path, did_you_mean(str(value), known))
        if kind == "string_pattern_mismatch":
            return self._wrong_form(path, line)
        if kind in _TYPES:
            return self._diagnostic(
                "KG0202",
                f"`{name}` must be {_TYPES[kind]}, not {value_text(value)}",
                path,
                self._type_hint(path, kind, value),
            )
        if kind in {"string_too_long", "string_too_short", "too_long", "too_short"}:
            return self._diagnostic("KG0208", self._length(name, kind, value, context), path)
        bounds = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most")}
        if kind in bounds:
            field, word = bounds[kind]
            return self._diagnostic(
                "KG0208", f"`{name}` is {value}; it must be {word} {context[field]}", path
            )
        return self._diagnostic("KG0210", f"`{name}`: {line['msg'].removeprefix('Value error, ')}", path)

    def _length(self, name: str, kind: str, value: Any, context: Mapping[str, Any]) -> str:
        most, least = context.get("max_length"), context.get("min_length")
        unit = "characters" if kind.startswith("string") else "entries"
        if most is not None:
            return f"`{name}` has {len(value)} {unit}; it may have at most {most}"
        return (
            f"`{name}` is empty"
            if not value
            else f"`{name}` has {len(value)} {unit}; it must have at least {least}"
        )

    def _wrong_form(self, path: Path, line: Any) -> Diagnostic:
        pattern, value = line["ctx"]["pattern"], line["input"]
        if line["loc"][-1] == "[key]":
            at = self._document.mark(path, key=True)
            text = str(path[-1])
            return self._diagnostic(
                "KG0204", form_problem("", text, pattern), path, nearest_form(text, pattern), at
            )
        field = walk(self._schema, path) or {}
        hint = nearest_form(value, pattern)
        if not hint and pattern not in _MEANINGS:
            hint = _first_sentence(field.get("description", ""))
        return self._diagnostic(
            "KG0204", form_problem(name_of(path), value, pattern, field.get("examples", ())), path, hint
        )

    def _type_hint(self, path: Path, kind: str, value: Any) -> str:
        raw = self._document.raw(path)
        written = raw if raw is not None else str(value)
        if kind == "string_type" and not isinstance(value, dict | list):
            pattern = (walk(self._schema, path) or {}).get("pattern", "")
            if pattern and not re.fullmatch(pattern, written):
                return nearest_form(written, pattern) or f"write {_MEANINGS.get(pattern, 'text')}"
            return (
                f'quote it: "{written}"'
                if isinstance(path[-1], int)
                else f'quote it: `{path[-1]}: "{written}"`'
            )
        if kind == "list_type":
            return "write a list, with `- ` before each entry"
        if kind in {"dict_type", "model_type", "model_attributes_type"}:
            known = field_names(self._schema, path)
            return self._listed(known) if known else "write `NAME: VALUE` on each line"
        mark = self._document.mark(path)
        quoted = mark.text[mark.column - 1 : mark.column] in {'"', "'"}
        if kind == "int_type" and not quoted and (number := _whole(written)) is not None:
            return f"write {number}"
        right = r"true|false" if kind == "bool_type" else r"-?[0-9]+"
        return "remove the quotes" if quoted and re.fullmatch(right, written) else ""

    def _unknown_hint(self, path: Path) -> str:
        known = field_names(self._schema, path[:-1])
        hint = did_you_mean(str(path[-1]), known)
        if hint or not isinstance(path[-1], str):
            return hint
        home = self._home(path[-1])
        return f"move it to `{home}`" if home else self._listed(known)

    def _listed(self, known: Sequence[str]) -> str:
        return "fields here: " + ", ".join(f"`{name}`" for name in known) if known else ""

    def _home(self, name: str) -> str:
        """Return the only block nearest to the top with a field of that name; empty when there is none or several."""
        level: list[tuple[str, dict[str, Any]]] = [("", self._schema)]
        for _ in range(_DEEPEST):
            homes, below = [], []
            for place, node in level:
                for branch in branches(self._schema, node):
                    fields = branch.get("properties", {})
                    if place and name in fields:
                        homes.append(place)
                    below += [(f"{place}.{key}".strip("."), field) for key, field in fields.items()]
            if homes:
                return homes[0] if len(set(homes)) == 1 else ""
            level = below
        return ""

    def _field_hint(self, path: Path) -> str:
        """Return a description of a field, with an example or its own fields."""
        field = walk(self._schema, path) or {}
        what = _first_sentence(field.get("description", ""))
        if field.get("examples"):
            example = field["examples"][0]
            return f"{what}, for example `{path[-1]}: {example}`" if isinstance(example, str) else what
        nodes = [node for node in branches(self._schema, field) if "properties" in node]
        needed = [name for node in nodes for name in node.get("required", node["properties"])]
        if not needed or any(entries(deref(self._schema, node)) for node in nodes):
            return what
        return f"{what}: a mapping with " + ", ".join(f"`{name}`" for name in needed)
