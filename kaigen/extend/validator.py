"""Validates a document by the JSON Schema of a user's kind, with patterns that are searched in linear time.

Own versions of the keywords for which jsonschema uses Python's `re`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from kaigen.kinds.schema import deref
from kaigen.regex.keyword import pattern_keyword
from kaigen.regex.pattern import matches


def violations(schema: Mapping[str, Any], data: Any) -> Iterator[ValidationError]:
    """Yield what is wrong with the data.

    Args:
        schema: one without errors, as `kaigen.extend.schemas.check_schema` returns them.
        data: of a document.
    """
    # jsonschema would continue with its own class at a schema that names its dialect.
    root = {key: value for key, value in schema.items() if key != "$schema"}
    found: Iterator[ValidationError] = _validator(root)(root).iter_errors(data)
    return found


def _validator(root: dict[str, Any]) -> Any:
    def unevaluated(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not isinstance(instance, dict):
            return
        others = {key: value for key, value in schema.items() if key != "unevaluatedProperties"}
        evaluated = _evaluated(validator, root, instance, others)
        wrong = [key for key in instance if key not in evaluated and not _fits(validator, rule, instance[key])]
        if wrong:
            yield ValidationError(f"unevaluated properties are not allowed: {', '.join(wrong)}")

    return extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {
            "pattern": pattern_keyword(),
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
            "unevaluatedProperties": unevaluated,
        },
    )


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: object
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, rule in patterns.items():
            for key in _matching(instance, [pattern]):
                yield from validator.descend(instance[key], rule, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, rule: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    named = _matching(instance, schema.get("patternProperties", ())) | schema.get("properties", {}).keys()
    extras = [key for key in instance if key not in named]
    if isinstance(rule, dict):
        for key in extras:
            yield from validator.descend(instance[key], rule, path=key)
    elif not rule and extras:
        yield ValidationError(f"additional properties are not allowed: {', '.join(extras)}")


def _evaluated(validator: Any, root: dict[str, Any], instance: dict[str, Any], schema: Any) -> set[str]:
    """Return the fields that the keywords of a schema and of those that apply with it have examined."""
    if not isinstance(schema, dict):
        return set()
    found = set(instance) & set(schema.get("properties", {}))
    found |= _matching(instance, schema.get("patternProperties", ()))
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            found |= {key for key, value in instance.items() if _fits(validator, schema[keyword], value)}
    for inner in _applying(validator, root, instance, schema):
        found |= _evaluated(validator, root, instance, inner)
    return found


def _applying(validator: Any, root: dict[str, Any], instance: dict[str, Any], schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the schemas in a schema that apply to the same mapping."""
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            yield deref(root, {"$ref": schema[keyword]})
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from (inner for inner in schema.get(keyword, ()) if _fits(validator, inner, instance))
    if "if" in schema:
        fits = _fits(validator, schema["if"], instance)
        yield from [schema["if"], schema.get("then")] if fits else [schema.get("else")]
    yield from (inner for key, inner in schema.get("dependentSchemas", {}).items() if key in instance)


def _fits(validator: Any, rule: Any, value: Any) -> bool:
    return next(validator.descend(value, rule), None) is None


def _matching(instance: Mapping[str, Any], patterns: Iterable[str]) -> set[str]:
    return {key for key in instance if any(matches(pattern, key) for pattern in patterns)}
