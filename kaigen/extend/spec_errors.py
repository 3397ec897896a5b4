"""Errors in a `spec` that does not match the JSON Schema of a user's kind, in the words of kaigen's own kinds.

Own code around jsonschema: its messages name Python values and know neither lines nor the field that was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import relevance
from msgspec import Struct

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.field_path import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.diagnostics.suggest import did_you_mean, nearest
from kaigen.emit.values import TYPES
from kaigen.kinds.errors import form_problem, nearest_form, value_text
from kaigen.kinds.positioned import Positioned, name_of

if TYPE_CHECKING:
    from jsonschema import ValidationError

_LONGEST = 200
"""Characters of a message of jsonschema."""


class _SpecError(Struct, frozen=True):
    """One error.

    Attributes:
        problem: the error.
        mark: the place in the document.
        missing: name of the missing field, where that is the error.
        meant: name of the field that an unknown one probably means.
    """

    problem: Problem
    mark: Mark
    missing: str = ""
    meant: str = ""


class _Violation:
    """One rule of the schema that a value breaks."""

    def __init__(self, document: Positioned, error: ValidationError) -> None:
        self.document = document
        self.rule = str(error.validator)
        self.value: Any = error.instance
        self.expected: Any = error.validator_value
        self.path: FieldPath = ("spec", *error.absolute_path)
        self.name = name_of(self.path)
        self.text = error.message
        self.schema: Mapping[str, Any] = error.schema if isinstance(error.schema, dict) else {}

    def error(self, code: str, message: str, hint: str = "") -> _SpecError:
        """Return an error at the value."""
        return _SpecError(Problem(code, message, self.path, hint), self.document.mark(self.path))


def spec_errors(document: Positioned, schema: dict[str, Any], spec: object) -> list[Diagnostic]:
    """Return every error in a document's `spec` against its kind's schema.

    Args:
        document: the document, for places.
        schema: the kind's.
        spec: the spec as plain data.
    """
    errors = [
        item for error in Draft202012Validator(schema).iter_errors(spec) for item in _explain(document, error)
    ]
    # A required field that is there under a mistyped name is reported once, as the unknown field.
    mistyped = {(item.problem.path[:-1], item.meant) for item in errors if item.meant}
    return [
        item.problem.located(item.mark)
        for item in dict.fromkeys(errors)
        if not (item.missing and (item.problem.path[:-1], item.missing) in mistyped)
    ]


def _explain(document: Positioned, error: ValidationError) -> Iterator[_SpecError]:
    violation = _Violation(document, error)
    if violation.rule in {"anyOf", "oneOf"} and error.context:
        depth = max(len(item.absolute_path) for item in error.context)
        if depth > len(error.absolute_path):
            deepest = [item for item in error.context if len(item.absolute_path) == depth]
            yield from _explain(document, max(deepest, key=relevance))
        else:
            yield _no_alternative(violation)
        return
    yield from _RULES.get(violation.rule, _other)(violation)


def _no_alternative(violation: _Violation) -> _SpecError:
    options = violation.expected if isinstance(violation.expected, list) else []
    types = [TYPES[name] for option in options if (name := _type_of(option)) in TYPES]
    if types:
        message = f"`{violation.name}` must be {' or '.join(types)}, not {value_text(violation.value)}"
    else:
        message = f"`{violation.name}` matches none of the allowed alternatives"
    return violation.error("KG0206", message)


def _type_of(schema: object) -> str:
    name = schema.get("type") if isinstance(schema, dict) else None
    return name if isinstance(name, str) else ""


def _unknown_fields(violation: _Violation) -> Iterator[_SpecError]:
    if not isinstance(violation.value, dict):
        return
    fields: Mapping[str, Any] = violation.schema.get("properties", {})
    patterns: Mapping[str, Any] = violation.schema.get("patternProperties", {})
    for key in violation.value:
        if key in fields or any(re.search(pattern, key) for pattern in patterns):
            continue
        meant = next(iter(nearest(key, fields)), "")
        hint = "fields here: " + ", ".join(f"`{field}`" for field in fields) if fields else ""
        if meant:
            hint = f"did you mean `{meant}`?"
        path = (*violation.path, key)
        problem = Problem("KG0201", f"unknown field `{key}`", path, hint)
        yield _SpecError(problem, violation.document.mark(path, key=True), meant=meant)


def _missing_fields(violation: _Violation) -> Iterator[_SpecError]:
    if not isinstance(violation.value, dict):
        return
    fields: Mapping[str, Any] = violation.schema.get("properties", {})
    for key in violation.expected:
        # jsonschema reports each missing field in an error of its own.
        if key in violation.value or f"'{key}'" not in violation.text:
            continue
        description = str((fields.get(key) or {}).get("description", ""))
        problem = Problem(
            "KG0203",
            f"`{key}` is missing",
            (*violation.path, key),
            description.split(". ")[0].rstrip("."),
        )
        yield _SpecError(problem, violation.document.mark(violation.path), missing=key)


def _wrong_type(violation: _Violation) -> Iterator[_SpecError]:
    expected = violation.expected
    types: Sequence[str] = [expected] if isinstance(expected, str) else expected
    words = " or ".join(TYPES.get(item, item) for item in types)
    raw = violation.document.raw(violation.path)
    field = violation.path[-1]
    quote = "string" in types and isinstance(violation.value, int | float) and raw is not None
    hint = f'quote it: `{field}: "{raw}"`' if quote and isinstance(field, str) else ""
    yield violation.error(
        "KG0202", f"`{violation.name}` must be {words}, not {value_text(violation.value)}", hint
    )


def _wrong_choice(violation: _Violation) -> Iterator[_SpecError]:
    choices = violation.expected if violation.rule == "enum" else [violation.expected]
    listed = ", ".join(f"`{item}`" for item in choices)
    value = violation.value
    text = f"`{value}`" if isinstance(value, str) else value_text(value)
    yield violation.error(
        "KG0205",
        f"{text} is not one of the values of `{violation.name}`: {listed}",
        did_you_mean(str(value), map(str, choices)),
    )


def _wrong_form(violation: _Violation) -> Iterator[_SpecError]:
    value, pattern = violation.value, violation.expected
    examples = violation.schema.get("examples", ())
    yield violation.error(
        "KG0204", form_problem(violation.name, value, pattern, examples), nearest_form(value, pattern)
    )


def _out_of_range(violation: _Violation) -> Iterator[_SpecError]:
    limit = f"{_LIMITS[violation.rule]} {violation.expected}"
    yield violation.error("KG0208", f"`{violation.name}` is {violation.value}; it must be {limit}")


def _wrong_size(violation: _Violation) -> Iterator[_SpecError]:
    unit = "characters" if violation.rule.endswith("Length") else "entries"
    limit = f"{_SIZE_LIMITS[violation.rule]} {violation.expected}"
    yield violation.error(
        "KG0208", f"`{violation.name}` has {len(violation.value)} {unit}; it must have {limit}"
    )


def _other(violation: _Violation) -> Iterator[_SpecError]:
    text = violation.text
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}…"
    yield violation.error("KG0210", f"`{violation.name}`: {text}")


_LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}
_SIZE_LIMITS = {
    f"{side}{what}": word
    for side, word in (("min", "at least"), ("max", "at most"))
    for what in ("Length", "Items", "Properties")
}
_RULES: Mapping[str, Callable[[_Violation], Iterator[_SpecError]]] = {
    "additionalProperties": _unknown_fields,
    "unevaluatedProperties": _unknown_fields,
    "required": _missing_fields,
    "type": _wrong_type,
    "enum": _wrong_choice,
    "const": _wrong_choice,
    "pattern": _wrong_form,
    **dict.fromkeys(_LIMITS, _out_of_range),
    **dict.fromkeys(_SIZE_LIMITS, _wrong_size),
}
"""What explains the violation of each keyword of JSON Schema."""
