"""The JSON Schema of a user's kind: check it, embed it in a document's schema, and fill in its defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import best_match

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.problem import dotted_path
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.schema import deref
from kaigen.regex.parser import PatternError
from kaigen.regex.pattern import compile_pattern

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DATA = frozenset({"const", "default", "enum", "examples"})
"""Keywords whose values are data, not schemas."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
"""Keywords whose values are schemas by name."""
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
    if error := _meta_error(schema, ()):
        return [Diagnostic("KG1003", error[1], document.mark(error[0]))]
    found = []
    for path, keyword, value in _keywords(schema):
        if keyword in {"$ref", "$dynamicRef"} and not _resolves(schema, value):
            hint = "refer to a definition in this schema, such as `#/$defs/NAME`"
            at = document.mark((*path, keyword))
            found.append(Diagnostic("KG1003", f"`{value}` is not defined in this schema", at, hint))
        elif keyword in {"$ref", "$dynamicRef"} and (error := _meta_error(schema, _target(value))):
            # The definition may be data, which the dialect does not describe.
            found.append(Diagnostic("KG1003", error[1], document.mark(error[0])))
    for path, pattern, key in _patterns(schema):
        if problem := pattern_problem(pattern):
            message = f"not a regular expression of RE2: {problem}"
            found.append(Diagnostic("KG1003", message, document.mark(path, key=key), problem.hint))
    for path, inner in _schemas(schema):
        if path and "$schema" in inner:
            message = "only the whole schema may name its dialect"
            found.append(Diagnostic("KG1003", message, document.mark((*path, "$schema")), "remove it"))
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


def _meta_error(root: dict[str, Any], path: FieldPath) -> tuple[FieldPath, str] | None:
    """Return the place and the message of an error in the schema at a path; None if it is valid."""
    error = best_match(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(_at(root, path)))
    if error is None:
        return None
    place = (*path, *error.absolute_path)
    return place, f"not a valid JSON Schema: `{dotted_path(place) or 'the schema'}`: {error.message}"


def _is_object(schema: dict[str, Any]) -> bool:
    return deref(schema, schema).get("type") == "object"


def pattern_problem(pattern: str) -> PatternError | None:
    """Return what is wrong with a regular expression; None if it can be used."""
    try:
        compile_pattern(pattern)
    except PatternError as error:
        return error
    return None


def _resolves(schema: Any, ref: str) -> bool:
    if not ref.startswith("#"):
        return False
    here = schema
    seen = set()
    while True:
        for part in _target(ref):
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


def _keywords(root: dict[str, Any]) -> Iterator[tuple[FieldPath, str, str]]:
    """Yield every keyword whose value is a string, with the path of the schema that has it."""
    for path, schema in _schemas(root):
        for key, value in schema.items():
            if isinstance(value, str):
                yield path, key, value


def _patterns(root: dict[str, Any]) -> Iterator[tuple[FieldPath, str, bool]]:
    """Yield every regular expression with its path, and whether it is a key."""
    for path, schema in _schemas(root):
        if isinstance(pattern := schema.get("pattern"), str):
            yield (*path, "pattern"), pattern, False
        keys = schema.get("patternProperties")
        for key in keys if isinstance(keys, dict) else ():
            yield (*path, "patternProperties", key), key, True


def _schemas(root: dict[str, Any]) -> Iterator[tuple[FieldPath, dict[str, Any]]]:
    """Yield the schema and every schema in it, each with its path, also those in data that a reference names."""
    pending: list[tuple[FieldPath, Any, bool]] = [((), root, False)]
    seen: set[FieldPath] = set()
    while pending:
        path, node, is_map = pending.pop()
        if isinstance(node, list):
            pending += [((*path, index), item, False) for index, item in enumerate(node)]
        if not isinstance(node, dict) or (not is_map and path in seen):
            continue
        if not is_map:
            seen.add(path)
            yield path, node
            for keyword in ("$ref", "$dynamicRef"):
                if isinstance(ref := node.get(keyword), str) and _resolves(root, ref):
                    pending.append((_target(ref), _at(root, _target(ref)), False))
        pending += [
            ((*path, key), value, not is_map and key in _NAMED)
            for key, value in node.items()
            if is_map or key not in _DATA
        ]


def _target(ref: str) -> FieldPath:
    return tuple(part for part in ref[1:].split("/")[1:] if part)


def _at(root: dict[str, Any], path: FieldPath) -> Any:
    here: Any = root
    for part in path:
        here = here[part]
    return here


def embed_schema(schema: Any, place: str = "#/properties/spec", *, names: bool = False) -> Any:
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
                result[key] = embed_schema(value, place, names=not names and key in _NAMED)
        return result
    return [embed_schema(item, place) for item in schema] if isinstance(schema, list) else schema


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


def given_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema that a template gives a setting, as far as Helm and kaigen know its keywords.

    Raises:
        PatternError: a `pattern` is not a regular expression.
        ValueError: it is not a valid schema.
    """
    error = best_match(Draft7Validator(Draft7Validator.META_SCHEMA).iter_errors(dict(schema)))
    if error is not None:
        raise ValueError(f"`{dotted_path(tuple(error.absolute_path)) or 'schema'}`: {error.message}")
    found = _for_values(schema)
    for _, pattern, _ in _patterns(found):
        compile_pattern(pattern)
    return found


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
            found[key] = {name: _for_values(inner) for name, inner in value.items() if isinstance(inner, dict)}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            found[key] = _for_values(value)
        else:
            found[key] = value
    return found
