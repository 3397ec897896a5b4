"""Explain violations of a JSON Schema: diagnostics with positions, reasons and hints.

Own code around jsonschema: its messages name Python values and know neither lines nor the field that was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from jsonschema.exceptions import relevance
from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.core.text import clip_text, describe, series
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.problem import MOST, Problem, more_problems
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kinds.field_examples import example_of, needed_fields
from kaigen.kinds.habits import usual_field
from kaigen.kinds.positioned import Positioned, name_of
from kaigen.kinds.schema import branches, deref, field_names, walk
from kaigen.kinds.value_texts import (
    TYPES,
    first_sentence,
    form_hint,
    form_problem,
    has_meaning,
    lower_first,
    nearest_form,
    whole_number,
)
from kaigen.regex.pattern import matches
from kaigen.yaml.dump import flow
from kaigen.yaml.scalars import file_mode

if TYPE_CHECKING:
    from jsonschema import ValidationError

_LONGEST = 200
"""Characters of a message of jsonschema."""

_DEEPEST = 6
"""Number of levels in which the right block of a misplaced field is searched."""

_MOST_HOMES = 2
"""Most blocks that a hint names."""

_COPY = "canary"
"""A block that repeats fields of the one that it is in, so that no hint names it."""


class Explained(Struct, frozen=True):
    """One error of a document.

    Attributes:
        problem: the error.
        at: path of the value, or of its key, that is marked.
        key: whether the key is marked.
        rank: of several errors of one value, the one with the lowest rank is reported.
        names: names of the missing fields, where that is the error.
        meant: for an unknown field, the name of the field that it probably means.
    """

    problem: Problem
    at: FieldPath
    key: bool = False
    rank: int = 0
    names: tuple[str, ...] = ()
    meant: str = ""


def explain(
    document: Positioned, schema: dict[str, Any], errors: Iterable[ValidationError], place: FieldPath = ()
) -> list[Diagnostic]:
    """Return a diagnostic for each error, without those that only follow from another one.

    Args:
        document: plain data with positions.
        schema: describes the fields of the checked value, for hints.
        errors: as jsonschema found them in the value.
        place: path of the value in the document.
    """
    found = find_problems(document, schema, errors, place)
    shown = [item.problem.located(document.mark(item.at, key=item.key)) for item in found[:MOST]]
    if len(found) > MOST:
        last = found[MOST - 1]
        more = more_problems(last.problem, "more problems")
        shown.append(more.located(document.mark(last.at, key=last.key)))
    return shown


def find_problems(
    document: Positioned, schema: dict[str, Any], errors: Iterable[ValidationError], place: FieldPath = ()
) -> list[Explained]:
    """Return the problem of each error; see `explain`."""
    explainer = _Explainer(document, schema, place)
    found = list(islice((item for error in errors for item in explainer.explain(error)), MOST + 1))
    mistyped = {(item.problem.path[:-1], item.meant) for item in found if item.meant}
    first: dict[tuple[FieldPath, bool, tuple[str, ...]], Explained] = {}
    for item in sorted(found, key=lambda item: item.rank):
        if not any((item.at, name) in mistyped for name in item.names):
            first.setdefault((item.problem.path, item.key, item.names), item)
    return [item for item in found if first.get((item.problem.path, item.key, item.names)) is item]


class _Violation:
    """One rule of the schema that a value breaks."""

    def __init__(self, error: ValidationError, place: FieldPath) -> None:
        self.rule = str(error.validator)
        self.value: Any = error.instance
        self.expected: Any = error.validator_value
        self.inner: FieldPath = tuple(error.absolute_path)
        self.path: FieldPath = (*place, *self.inner)
        self.name = name_of(self.path)
        self.text = error.message
        self.schema: Mapping[str, Any] = error.schema if isinstance(error.schema, dict) else {}
        self.key = list(error.schema_path)[-2:-1] == ["propertyNames"]
        if self.key:
            self.path = (*self.path, str(self.value))

    def problem(self, code: str, message: str, hint: str = "", rank: int = 0) -> Explained:
        """Return a problem of the value, or of the key that it is."""
        return Explained(Problem(code, message, self.path, hint), self.path, self.key, rank)


def _is_share(field: Mapping[str, Any] | None) -> bool:
    """Return whether a number is a share, which is at most 1."""
    return (field or {}).get("maximum") == 1


class _Explainer:
    """Explains the errors of one value."""

    def __init__(self, document: Positioned, schema: dict[str, Any], place: FieldPath) -> None:
        self.document = document
        self.schema = schema
        self.place = place

    def explain(self, error: ValidationError) -> Iterator[Explained]:
        """Return the problems that an error stands for."""
        violation = _Violation(error, self.place)
        if violation.rule not in {"anyOf", "oneOf"}:
            yield from _RULES.get(violation.rule, _Explainer._other)(self, violation)
        elif names := _exclusive_fields(violation):
            yield from self._choice(violation, names)
        else:
            yield from self._alternatives(violation, error)

    def _alternatives(self, violation: _Violation, error: ValidationError) -> Iterator[Explained]:
        """Explain the alternative that the value's type suggests, else the one that it matches furthest."""
        options = [deref(self.schema, option) if isinstance(option, dict) else {} for option in violation.expected]
        types = [_types(option) for option in options]
        fitting = [index for index, names in enumerate(types) if not names or _has_type(violation.value, names)]
        context = error.context or []
        if not fitting:
            # A block is the long form of a value that is usually written in its first form.
            usual = types[:1] if any("properties" in option for option in options) else types
            yield self._wrong_type(violation, list(dict.fromkeys(name for names in usual for name in names)))
        elif len(fitting) == 1:
            for inner in context:
                if inner.schema_path[0] == fitting[0]:
                    yield from self.explain(inner)
        else:
            depth = max((len(item.absolute_path) for item in context), default=0)
            if depth > len(error.absolute_path):
                deepest = [item for item in context if len(item.absolute_path) == depth]
                yield from self.explain(max(deepest, key=relevance))
            elif context:
                yield violation.problem("KG0206", f"`{violation.name}` matches none of the allowed alternatives")
            else:
                yield from self._other(violation)

    def _choice(self, violation: _Violation, names: tuple[str, ...]) -> Iterator[Explained]:
        """Explain a block that needs exactly one of some fields."""
        if not isinstance(violation.value, dict):
            return
        given = [name for name in names if name in violation.value]
        name, path = violation.name, violation.path
        if given:
            both = " and ".join(f"`{field}`" for field in given)
            message = f"`{name}` has {both}, which exclude each other"
            problem = Problem("KG0207", message, path, "keep one of them")
            yield Explained(problem, (*path, given[-1]), key=True)
            return
        wanted = ", ".join(f"`{field}`" for field in names)
        subject = f"`{name}`" if name else "the document"
        yield Explained(Problem("KG0206", f"{subject} needs one of {wanted}", path), path, key=True, names=names)

    def _unknown_fields(self, violation: _Violation) -> Iterator[Explained]:
        if not isinstance(violation.value, dict):
            return
        known = list(violation.schema.get("properties", {}))
        patterns = violation.schema.get("patternProperties", {})
        for key in violation.value:
            if key in known or any(matches(pattern, key) for pattern in patterns):
                continue
            hint = did_you_mean(key, known)
            meant = hint.removeprefix("did you mean `").removesuffix("`?")
            if not hint:
                hint = usual_field(key, known) or self._move(key, violation.value[key], known)
            path = (*violation.path, key)
            yield Explained(Problem("KG0201", f"unknown field `{key}`", path, hint), path, key=True, meant=meant)

    def _move(self, name: str, value: object, known: list[str]) -> str:
        """Return where an unknown field or its fields belong; the known fields where nothing says so."""
        homes = self._homes(name, value)
        if 0 < len(homes) <= _MOST_HOMES:
            return f"move it to {' or '.join(f'`{home}`' for home in homes)}"
        if isinstance(value, dict) and value and value.keys() <= set(known):
            return f"move {', '.join(f'`{field}`' for field in value)} out of it"
        return _listed(known)

    def _homes(self, name: str, value: object) -> list[str]:
        """Return the blocks nearest to the top with a field of that name that may have the value."""
        level: list[tuple[str, dict[str, Any]]] = [(".".join(map(str, self.place)), self.schema)]
        for _ in range(_DEEPEST):
            homes, below = [], []
            for place, node in level:
                for branch in branches(self.schema, node):
                    fields = branch.get("properties", {})
                    if place and name in fields and self._may_be(fields[name], value):
                        homes.append(place)
                    below += [(f"{place}.{key}".strip("."), field) for key, field in fields.items() if key != _COPY]
            if homes:
                return list(dict.fromkeys(homes))
            level = below
        return []

    def _may_be(self, field: dict[str, Any], value: object) -> bool:
        """Return whether a field may have a value, by its type and where it has only certain values."""
        options = [*branches(self.schema, field)]
        types = {name for branch in options for name in _types(branch)}
        choices = [branch["enum"] for branch in options if "enum" in branch]
        fits = not types or _has_type(value, sorted(types))
        return fits and (not choices or any(value in each for each in choices))

    def _missing_field(self, violation: _Violation) -> Iterator[Explained]:
        # jsonschema reports each missing field in an error of its own.
        for key in violation.expected:
            if violation.text == f"{key!r} is a required property":
                path = (*violation.path, key)
                hint = self._field_hint((*violation.inner, key))
                problem = Problem("KG0203", f"`{key}` is missing", path, hint)
                yield Explained(problem, violation.path, names=(key,))

    def _field_hint(self, path: FieldPath) -> str:
        """Return what to write for a missing field: an example, else the fields of a block; and what it means."""
        field, name = walk(self.schema, path) or {}, path[-1]
        meaning = lower_first(first_sentence(field.get("description", "")))
        after = f": {meaning}" if meaning else ""
        if (example := example_of(self.schema, field)) is not None:
            return f"add, for example, `{name}: {flow(example)}`{after}"
        names, how = needed_fields(self.schema, field)
        listed = " ".join((" with", *filter(None, [how]), ", ".join(f"`{each}`" for each in names))) if names else ""
        return f"add `{name}`{listed}{after}"

    def _type(self, violation: _Violation) -> Iterator[Explained]:
        expected = violation.expected
        yield self._wrong_type(violation, [expected] if isinstance(expected, str) else expected)

    def _wrong_type(self, violation: _Violation, types: Sequence[str]) -> Explained:
        words = " or ".join(TYPES.get(name, name) for name in types)
        message = f"`{violation.name}` must be {words}, not {describe(violation.value, typed=True)}"
        return violation.problem("KG0202", message, self._type_hint(violation, types), rank=1)

    def _type_hint(self, violation: _Violation, types: Sequence[str]) -> str:
        path, value = violation.path, violation.value
        raw = self.document.raw(path)
        written = raw if raw is not None else str(value)
        if "string" in types and not isinstance(value, dict | list):
            field = walk(self.schema, violation.inner) or {}
            pattern = field.get("pattern", "")
            if pattern and not matches(pattern, written):
                return form_hint(written, pattern, field.get("examples", ()))
            return f'quote it: "{written}"' if isinstance(path[-1], int) else f'quote it: `{path[-1]}: "{written}"`'
        if types == ["array"]:
            return "write a list, with `- ` before each entry"
        if types == ["object"]:
            return _listed(field_names(self.schema, violation.inner)) or "write `NAME: VALUE` on each line"
        mark = self.document.mark(path)
        quoted = mark.text[mark.column - 1 : mark.column] in {'"', "'"}
        if types == ["integer"] and not quoted and (number := whole_number(written)) is not None:
            octal = file_mode(written)
            return (
                f"write {number}" if octal in (None, number) else f"write {number}, or 0o{octal:o} for the octal number"
            )
        if types == ["number"] and (percent := re.fullmatch(r"([0-9.]{1,9}) *%", written)):
            return f"write {float(percent[1]) / 100:g}" if _is_share(walk(self.schema, violation.inner)) else ""
        right = r"true|false" if types == ["boolean"] else r"-?(0|[1-9][0-9]*)"
        return "remove the quotes" if quoted and re.fullmatch(right, written) else ""

    def _wrong_choice(self, violation: _Violation) -> Iterator[Explained]:
        choices = violation.expected if violation.rule == "enum" else [violation.expected]
        value, name = violation.value, violation.name
        text = f"`{value}`" if isinstance(value, str) else describe(value)
        listed = [f"`{item}`" for item in choices]
        wanted = series(listed, "or")
        yield violation.problem(
            "KG0205",
            f"`{name}` must be {wanted}, not {text}"
            if len(choices) == 1
            else f"{text} is not one of the values of `{name}`: {wanted}",
            did_you_mean(str(value), map(str, choices)) or self._enough(violation.path, value),
        )

    def _enough(self, path: FieldPath, value: object) -> str:
        """Return a hint about a value that is the name of a field next to it, which decides on its own: `tune`."""
        node: Any = self.document.data
        for step in path[:-1]:
            node = node[step]
        is_there = isinstance(value, str) and isinstance(node, dict) and isinstance(node.get(value), dict)
        return f"delete it: the field `{value}` is enough" if is_there else ""

    def _pattern(self, violation: _Violation) -> Iterator[Explained]:
        pattern, value = violation.schema.get("pattern", ""), str(violation.value)
        hint = nearest_form(value, pattern)
        if violation.key:
            yield violation.problem("KG0204", form_problem("", value, pattern), hint, rank=3)
            return
        field = walk(self.schema, violation.inner) or {}
        if not hint and not has_meaning(pattern):
            hint = first_sentence(field.get("description", ""))
        message = form_problem(violation.name, value, pattern, field.get("examples", ()))
        yield violation.problem("KG0204", message, hint, rank=3)

    def _out_of_range(self, violation: _Violation) -> Iterator[Explained]:
        if "pattern" in violation.schema:
            # A number in place of a text, such as a quantity below 0.
            yield from self._pattern(violation)
            return
        limit = f"{_LIMITS[violation.rule]} {violation.expected}"
        message = f"`{violation.name}` is {violation.value}; it must be {limit}"
        share = violation.rule == "maximum" and violation.expected == 1 and 1 < violation.value <= 100
        hint = f"write {violation.value / 100:g} for {violation.value}%" if share else ""
        yield violation.problem("KG0208", message, hint, rank=4)

    def _wrong_size(self, violation: _Violation) -> Iterator[Explained]:
        unit = "characters" if violation.rule.endswith("Length") else "entries"
        size, limit = len(violation.value), violation.expected
        if violation.rule.startswith("max"):
            message = f"`{violation.name}` has {size} {unit}; it may have at most {limit}"
        elif size:
            message = f"`{violation.name}` has {size} {unit}; it must have at least {limit}"
        else:
            message = f"`{violation.name}` is empty"
        yield violation.problem("KG0208", message, rank=2)

    def _other(self, violation: _Violation) -> Iterator[Explained]:
        text = violation.text
        yield violation.problem("KG0210", f"`{violation.name}`: {clip_text(text, _LONGEST)}", rank=5)


def _exclusive_fields(violation: _Violation) -> tuple[str, ...]:
    """Return the fields of which a block needs exactly one; empty for another rule."""
    options = violation.expected if violation.rule == "oneOf" else []
    names = [option["required"] for option in options if isinstance(option, dict) and set(option) == {"required"}]
    single = names and len(names) == len(options) and all(len(name) == 1 for name in names)
    return tuple(name[0] for name in names) if single else ()


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the types that a schema accepts; empty when it does not say."""
    kind = schema.get("type", "object" if "properties" in schema else [])
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _has_type(value: object, names: Sequence[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in names
    if isinstance(value, int | float):
        return "number" in names or ("integer" in names and float(value).is_integer())
    kinds = {"string": str, "array": list, "object": dict}
    return any(isinstance(value, kinds.get(name, ())) for name in names)


def _listed(known: Sequence[str]) -> str:
    return "fields here: " + ", ".join(f"`{name}`" for name in known) if known else ""


_LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}
_SIZES = [f"{side}{what}" for side in ("min", "max") for what in ("Length", "Items", "Properties")]
_RULES: Mapping[str, Callable[[_Explainer, _Violation], Iterator[Explained]]] = {
    "additionalProperties": _Explainer._unknown_fields,
    "unevaluatedProperties": _Explainer._unknown_fields,
    "required": _Explainer._missing_field,
    "type": _Explainer._type,
    "enum": _Explainer._wrong_choice,
    "const": _Explainer._wrong_choice,
    "pattern": _Explainer._pattern,
    **dict.fromkeys(_LIMITS, _Explainer._out_of_range),
    **dict.fromkeys(_SIZES, _Explainer._wrong_size),
}
"""What explains the violation of each keyword of JSON Schema."""
