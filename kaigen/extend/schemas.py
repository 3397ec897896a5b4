"""The JSON Schema of a user's kind: check it, embed it in a document's schema, and fill in its defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.field_path import FieldPath, dotted
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.schema import deref

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
"""Keywords with the same meaning in draft 7, which Helm reads, and in 2020-12."""


def check_schema(document: Positioned) -> list[Diagnostic]:
    """Return the errors of a schema itself.

    Args:
        document: the schema, with positions.
    """
    schema = document.data
    dialect = schema.get("$schema", DIALECT)
    if dialect != DIALECT:
        message = f"a kind's schema must be JSON Schema 2020-12, not `{dialect}`"
        return [Diagnostic("KG1003", message, document.mark(("$schema",)), f"write `$schema: {DIALECT}`")]
    error = best_match(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema))
    if error is not None:
        path = tuple(error.absolute_path)
        message = f"not a valid JSON Schema: `{dotted(path) or 'the schema'}`: {error.message}"
        return [Diagnostic("KG1003", message, document.mark(path))]
    found = []
    for path, keyword, value in _keywords(schema, ()):
        at = document.mark((*path, keyword))
        if keyword in {"$ref", "$dynamicRef"} and not _resolves(schema, value):
            hint = "refer to a definition in this schema, such as `#/$defs/NAME`"
            found.append(Diagnostic("KG1003", f"`{value}` is not defined in this schema", at, hint))
        elif keyword == "pattern" and (reason := _pattern_error(value)):
            found.append(Diagnostic("KG1003", f"not a regular expression: {reason}", at))
    if not found and not _is_object(schema):
        found.append(
            Diagnostic(
                "KG1003",
                "the schema of a `spec` must describe a mapping",
                document.mark(("type",)),
                "write `type: object` and `properties`",
            )
        )
    return found


def _is_object(schema: dict[str, Any]) -> bool:
    return deref(schema, schema).get("type") == "object"


def _pattern_error(pattern: str) -> str:
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


def _keywords(node: Any, path: FieldPath, *, names: bool = False) -> Iterator[tuple[FieldPath, str, str]]:
    """Yield every keyword whose value is a string, with the path of the schema that has it."""
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
    """Return the schema with its references rewritten for a larger schema that contains it at `place`."""
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
    """Return the value with the schema's defaults for the fields it leaves out."""
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
    """Return the JSON Schema of a setting: that of the field it comes from, else the type of its default.

    Args:
        schema: of that field; None for a setting that comes from no field.
        default: the setting's default.
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
