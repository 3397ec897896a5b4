"""A user kind's JSON Schema: is it one, does a spec fit it, and what the spec leaves to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.field_path import dotted
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.emit.values import TYPES
from kaigen.kinds.errors import form_problem, nearest_form, shown
from kaigen.kinds.positioned import Positioned, name_of
from kaigen.kinds.schema import deref

if TYPE_CHECKING:
    from jsonschema import ValidationError

Path = tuple[str | int, ...]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are data, not schemas."""
# fmt: off
_VALUES_KEYWORDS = frozenset(
    [
        "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems",
        "items", "properties", "required", "additionalProperties",
    ]
)
# fmt: on
"""What draft 7, which Helm reads, means as 2020-12 does."""


def check_schema(document: Positioned) -> list[Diagnostic]:
    """What is wrong with a schema itself.

    Args:
        document: the schema with its places.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    schema = document.data
    dialect = schema.get("$schema", DIALECT)
    if dialect != DIALECT:
        message = f"a kind's schema is of JSON Schema 2020-12, not `{dialect}`"
        return [Diagnostic("KG1003", message, document.mark(("$schema",)), f"write `$schema: {DIALECT}`")]
    error = best_match(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema))
    if error is not None:
        path = tuple(error.absolute_path)
        message = f"no JSON Schema: `{dotted(path) or 'the schema'}`: {error.message}"
        return [Diagnostic("KG1003", message, document.mark(path))]
    found = []
    for path, keyword, value in _keywords(schema, ()):
        at = document.mark((*path, keyword))
        if keyword in {"$ref", "$dynamicRef"} and not _resolves(schema, value):
            hint = "a schema refers to its own parts only, as in `#/$defs/NAME`"
            found.append(Diagnostic("KG1003", f"`{value}` leads to nothing in this schema", at, hint))
        elif keyword == "pattern" and (reason := _no_pattern(value)):
            found.append(Diagnostic("KG1003", f"no regular expression: {reason}", at))
    if not found and not _is_object(schema):
        found.append(
            Diagnostic(
                "KG1003",
                "the schema of a `spec` describes a mapping",
                document.mark(("type",)),
                "write `type: object` and `properties`",
            )
        )
    return found


def _is_object(schema: dict[str, Any]) -> bool:
    return deref(schema, schema).get("type") == "object"


def _no_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return ""


def _resolves(schema: Any, ref: str) -> bool:
    if not ref.startswith("#"):
        return False
    here = schema
    seen = set()
    while True:
        for part in [part for part in ref[1:].split("/")[1:] if part]:
            if not isinstance(here, dict) or part not in here:
                return False
            here = here[part]
        if not isinstance(here, dict) or "$ref" not in here:
            return isinstance(here, dict | bool) and (ref[1:2] in {"", "/"})
        if ref in seen:
            return False
        seen.add(ref)
        ref, here = here["$ref"], schema
        if not isinstance(ref, str) or not ref.startswith("#"):
            return False


def _keywords(node: Any, path: Path, *, names: bool = False) -> Iterator[tuple[Path, str, str]]:
    """Every keyword with a text for its value, and the path of its schema."""
    if isinstance(node, dict):
        for key, value in node.items():
            if not names and isinstance(value, str):
                yield path, key, value
            elif names or key not in _DATA:
                inner = not names and key in {"properties", "patternProperties", "$defs", "dependentSchemas"}
                yield from _keywords(value, (*path, key), names=inner)
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _keywords(item, (*path, index))


def embedded(schema: Any, place: str = "#/properties/spec", *, names: bool = False) -> Any:
    """The schema as a part of a larger one: its references lead to where it now stands."""
    if isinstance(schema, dict):
        result = {}
        for key, value in schema.items():
            if not names and key in {"$schema", "$id"}:
                continue
            if not names and key == "$ref" and isinstance(value, str):
                result[key] = place + value[1:]
            elif not names and key in _DATA:
                result[key] = value
            else:
                inner = not names and key in {"properties", "patternProperties", "$defs", "dependentSchemas"}
                result[key] = embedded(value, place, names=inner)
        return result
    return [embedded(item, place) for item in schema] if isinstance(schema, list) else schema


def with_defaults(root: dict[str, Any], schema: Any, value: Any) -> Any:
    """The value with the defaults of what it leaves out."""
    if not isinstance(schema, dict):
        return value
    schema = deref(root, schema)
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        filled = {key: with_defaults(root, fields.get(key), item) for key, item in value.items()}
        for key, field in fields.items():
            full = deref(root, field) if isinstance(field, dict) else {}
            if key not in filled and "default" in full:
                filled[key] = with_defaults(root, full, full["default"])
        return filled
    if isinstance(value, list):
        return [with_defaults(root, schema.get("items"), item) for item in value]
    return value


def values_schema(schema: Mapping[str, Any] | None, default: Any) -> dict[str, Any]:
    """JSON Schema of a setting: what the kind's schema says of the field it comes from, else the default's type.

    Args:
        schema: of that field; None when it comes from none.
        default: the setting's.
    """
    if schema is not None and (found := _for_values(schema)):
        return found
    types: tuple[tuple[type, str], ...] = (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    )
    return {"type": next((name for kind, name in types if isinstance(default, kind)), "object")}


def _for_values(schema: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key not in _VALUES_KEYWORDS:
            continue
        if key == "properties":
            found[key] = {
                name: _for_values(inner) for name, inner in value.items() if isinstance(inner, dict)
            }
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            found[key] = _for_values(value)
        else:
            found[key] = value
    return found


def spec_problems(document: Positioned, schema: dict[str, Any], spec: Any) -> list[Diagnostic]:
    """Everything in a document's `spec` that does not fit the kind's schema.

    Args:
        document: the document, for places.
        schema: the kind's.
        spec: the spec as plain data.
    """
    from jsonschema import Draft202012Validator

    found: list[Diagnostic] = []
    for error in Draft202012Validator(schema).iter_errors(spec):
        found += _explain(document, error)
    # A needed field that is there with a typo is told already.
    mistyped = {
        (item.path.removesuffix(item.message.split("`")[1]), item.hint)
        for item in found
        if item.code == "KG0201"
    }
    return [
        item
        for item in dict.fromkeys(found)
        if not (
            item.code == "KG0203"
            and (item.path.removesuffix(name := item.message.split("`")[1]), f"did you mean `{name}`?")
            in mistyped
        )
    ]


def _explain(document: Positioned, error: ValidationError) -> Iterator[Diagnostic]:
    rule = str(error.validator)
    value: Any = error.instance
    wanted: Any = error.validator_value
    path: Path = ("spec", *error.absolute_path)
    name = name_of(path)
    if rule in {"anyOf", "oneOf"} and error.context:
        from jsonschema.exceptions import relevance

        depth = max(len(item.absolute_path) for item in error.context)
        if depth > len(error.absolute_path):
            deepest = [item for item in error.context if len(item.absolute_path) == depth]
            yield from _explain(document, max(deepest, key=relevance))
            return
        forms = [item for option in (wanted if isinstance(wanted, list) else []) for item in _types(option)]
        text = f"`{name}` fits none of its forms"
        text += f": it must be {' or '.join(forms)}, not {shown(value)}" if forms else ""
        yield Diagnostic("KG0206", text, document.mark(path), path=dotted(path))
        return

    def say(code: str, message: str, hint: str = "", at: Path = path, *, key: bool = False) -> Diagnostic:
        return Diagnostic(code, message, document.mark(at, key=key), hint, path=dotted(at))

    if rule in {"additionalProperties", "unevaluatedProperties"} and isinstance(value, dict):
        fields = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
        patterns = error.schema.get("patternProperties", {}) if isinstance(error.schema, dict) else {}
        for key in value:
            if key not in fields and not any(re.search(pattern, key) for pattern in patterns):
                listed = "fields here: " + ", ".join(f"`{field}`" for field in fields) if fields else ""
                hint = did_you_mean(key, fields) or listed
                yield say("KG0201", f"unknown field `{key}`", hint, (*path, key), key=True)
    elif rule == "required" and isinstance(value, dict):
        for key in [key for key in wanted if key not in value]:
            if f"'{key}'" in error.message:
                about = (error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}).get(
                    key
                )
                hint = str(about.get("description", "")).split(". ")[0].rstrip(".") if about else ""
                yield Diagnostic(
                    "KG0203", f"`{key}` is missing", document.mark(path), hint, path=dotted((*path, key))
                )
    elif rule == "type":
        types = [wanted] if isinstance(wanted, str) else wanted
        words = " or ".join(TYPES.get(item, item) for item in types)
        raw = document.raw(path)
        quote = "string" in types and isinstance(value, int | float) and raw is not None
        hint = f'quote it: `{path[-1]}: "{raw}"`' if quote and isinstance(path[-1], str) else ""
        yield say("KG0202", f"`{name}` must be {words}, not {shown(value)}", hint)
    elif rule in {"enum", "const"}:
        known = wanted if rule == "enum" else [wanted]
        listed = ", ".join(f"`{item}`" for item in known)
        text = f"`{value}`" if isinstance(value, str) else shown(value)
        message = f"{text} is not one of the values of `{name}`: {listed}"
        yield say("KG0205", message, did_you_mean(str(value), map(str, known)))
    elif rule == "pattern":
        examples = error.schema.get("examples", ()) if isinstance(error.schema, dict) else ()
        yield say("KG0204", form_problem(name, value, wanted, examples), nearest_form(value, wanted))
    elif rule in _BOUNDS:
        yield say("KG0208", f"`{name}` is {value}; it must be {_BOUNDS[rule]} {wanted}")
    elif rule in _LENGTHS:
        unit = {"L": "characters", "I": "entries", "P": "entries"}[rule[3]]
        yield say("KG0208", f"`{name}` has {len(value)} {unit}; it must have {_LENGTHS[rule]} {wanted}")
    else:
        text = error.message if len(error.message) <= 200 else f"{error.message[:197]}…"
        yield say("KG0210", f"`{name}`: {text}")


_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}
_LENGTHS = {
    f"{side}{what}": word
    for side, word in (("min", "at least"), ("max", "at most"))
    for what in ("Length", "Items", "Properties")
}


def _types(option: Any) -> Sequence[str]:
    kind = option.get("type") if isinstance(option, dict) else None
    return [TYPES[kind]] if isinstance(kind, str) and kind in TYPES else []
