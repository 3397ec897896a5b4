"""Examples of missing fields, which hints print."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from kaigen.dialects.registry import own_kinds
from kaigen.kinds.entry import KindEntry
from kaigen.kinds.field_examples import example_of, needed_fields
from kaigen.kinds.schema import json_schema
from kaigen.yaml.dump import flow


def required(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema of each field that some block needs."""
    blocks = [schema, *schema.get("$defs", {}).values()]
    return [each["properties"][name] for each in blocks for name in each.get("required", ()) if "properties" in each]


@pytest.mark.parametrize("kind", own_kinds(), ids=lambda kind: f"{kind.api_version}-{kind.kind}")
def test_the_example_of_a_required_field_is_valid(kind: KindEntry) -> None:
    schema = json_schema(kind)
    found = [(field, example_of(schema, field)) for field in required(schema)]
    examples = [(field, example) for field, example in found if example is not None]
    assert examples
    for field, example in examples:
        assert yaml.safe_load(flow(example)) == example
        errors = Draft202012Validator({**field, "$defs": schema.get("$defs", {})}).iter_errors(example)
        assert [error.message for error in errors] == []


def test_a_block_is_shown_with_the_fields_that_it_needs() -> None:
    size = {"type": "string", "examples": ["50Gi"]}
    block = {"type": "object", "required": ["size"], "properties": {"size": size, "class": {"type": "string"}}}
    assert example_of({}, block) == {"size": "50Gi"}
    assert example_of({}, {**block, "required": ["size", "class"]}) is None


def test_a_block_names_the_fields_that_it_needs_or_may_have() -> None:
    either = {"properties": {"a": {}, "b": {}, "c": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert needed_fields({}, either) == (["a", "b"], "one of")
    assert needed_fields({}, {"properties": {"a": {}, "b": {}}}) == (["a", "b"], "some of")
    assert needed_fields({}, {"properties": {"a": {}, "b": {}}, "required": ["a"]}) == (["a"], "")
    assert needed_fields({}, {"type": "string"}) == ([], "")
