"""Regular expressions of users' kinds and of values: none takes exponential time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kaigen.config.load import load_config
from kaigen.diagnostics.errors import InputError
from kaigen.extend.plugins import violations
from kaigen.pipeline.run import compile_specs
from tests.unit.extend.repository import HEAD, KIND, SPEC, messages, repository

BAD = "(a+)+$"
TEXT = "a" * 40 + "!"
ATTACKS = {
    "pattern": ("{pattern: '(a+)+$'}", f"'{TEXT}'", "KG0204"),
    "propertyNames": ("{type: object, propertyNames: {pattern: '(a+)+$'}}", f"{{'{TEXT}': 1}}", "KG0204"),
    "patternProperties": (
        "{type: object, patternProperties: {'(a+)+$': {type: integer}}}",
        f"{{'{TEXT}': x, aa: x}}",
        "KG0202",
    ),
    "additionalProperties": (
        "{type: object, patternProperties: {'(a+)+$': {}}, additionalProperties: false}",
        f"{{'{TEXT}': 1}}",
        "KG0201",
    ),
    "unevaluatedProperties": (
        "{type: object, allOf: [{patternProperties: {'(a+)+$': {}}}], unevaluatedProperties: false}",
        f"{{'{TEXT}': 1}}",
        "KG0201",
    ),
    "a reference to the whole schema": (
        "{type: object, properties: {a: {$ref: '#/$defs/t'}}}",
        f"{{a: '{TEXT}'}}",
        "KG0204",
    ),
    "a number in place of a text": ("{type: string, pattern: '(1+)+$'}", "1" * 18 + "e5", "KG0202"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_catastrophic_pattern_of_a_kind_ends(tmp_path: Path, attack: str) -> None:
    schema, value, code = ATTACKS[attack]
    text = (
        "$schema: https://json-schema.org/draft/2020-12/schema\ntype: object\n"
        f"properties:\n  text: {{type: string}}\n  any: {schema}\n$defs: {{t: {{pattern: '{BAD}'}}}}\n"
    )
    spec = SPEC.replace("{text: hello}", f"{{text: a, any: {value}}}")
    folder = repository(tmp_path, {"kind/schema.yaml": text, "specs/one.yaml": spec})
    started = time.process_time()
    found = messages(folder)
    assert time.process_time() - started < 1
    assert any(f" {code} " in line for line in found), found


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            "a: {pattern: 'a(?=b)'}",
            "schema.yaml:4:16 e KG1003 not a regular expression of RE2: a lookahead or lookbehind",
        ),
        (r"a: {pattern: '(a)\1'}", "schema.yaml:4:16 e KG1003 not a regular expression of RE2: a backreference"),
        ("a: {const: {pattern: '('}}\n  b: {$ref: '#/properties/a/const'}", "schema.yaml:4:24 e KG1003"),
        ("a: {const: {pattern: 3}}\n  b: {$ref: '#/properties/a/const'}", "schema.yaml:4:24 e KG1003"),
        (
            "a: {$schema: 'https://json-schema.org/draft/2020-12/schema', pattern: '(a+)+$'}",
            "schema.yaml:4:16 e KG1003 only the whole schema may name its dialect",
        ),
    ],
)
def test_a_pattern_without_a_search_in_linear_time_is_refused(tmp_path: Path, schema: str, message: str) -> None:
    text = f"type: object\nadditionalProperties: true\nproperties:\n  {schema}\n"
    found = messages(repository(tmp_path, {"kind/schema.yaml": text}))
    assert len(found) == 1, found
    assert message in found[0]


def _setting(folder: Path, schema: str, values: str = "") -> Path:
    return repository(
        folder,
        {
            "kaigen.yaml": f"namespace: ml\nkinds: [kinds]\n{values}",
            "kind/kind.yaml": KIND,
            "t/map.yaml.jinja": f"{HEAD}  text: {{{{ setting('text', 'aa', schema={schema}) }}}}\n",
        },
    )


def test_a_catastrophic_pattern_of_a_setting_ends(tmp_path: Path) -> None:
    schema = f"{{'type': 'string', 'pattern': '{BAD}'}}"
    folder = _setting(tmp_path, schema, f"values:\n  one:\n    text: '{TEXT}'\n")
    started = time.process_time()
    found = messages(folder)
    assert time.process_time() - started < 1
    assert any("KG0706" in line for line in found), found


@pytest.mark.parametrize(
    "schema",
    [
        "{'pattern': '('}",
        "{'pattern': '(?=a)'}",
        "{'properties': {'a': {'pattern': '('}}}",
        "{'type': 'txt'}",
        "{'properties': 3}",
        "'text'",
    ],
)
def test_an_invalid_schema_of_a_setting_is_an_error_of_the_template(tmp_path: Path, schema: str) -> None:
    found = messages(_setting(tmp_path, schema))
    assert len(found) == 1, found
    assert "map.yaml.jinja:6:3 e KG1005 " in found[0]
    assert "the schema of `text`" in found[0]


def test_keywords_that_helm_does_not_know_do_not_reach_the_chart(tmp_path: Path) -> None:
    folder = _setting(tmp_path, "{'type': 'string', '$ref': 'http://evil.example', 'maxLength': 9}")
    try:
        (compiled,) = compile_specs((), load_config(folder, "")).apps
    except InputError as error:
        raise AssertionError(error.diagnostics) from None
    (setting,) = [each for each in compiled.app.settings if each.path == "text"]
    assert setting.schema == {"type": "string", "maxLength": 9}


_SCHEMAS: list[dict[str, Any]] = [
    {"properties": {"a": {}}, "patternProperties": {"^b": {"type": "integer"}}, "additionalProperties": False},
    {"patternProperties": {"^b": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"properties": {"a": {}}, "allOf": [{"patternProperties": {"^b": {}}}], "unevaluatedProperties": False},
    {
        "anyOf": [{"properties": {"a": {"type": "integer"}}}, {"$ref": "#/$defs/b"}],
        "unevaluatedProperties": {"type": "string"},
        "$defs": {"b": {"properties": {"b": {"type": "integer"}}, "required": ["b"]}},
    },
    {
        "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
        "then": {"properties": {"b": {}}},
        "else": {"patternProperties": {"^c": {}}},
        "unevaluatedProperties": False,
    },
    {"dependentSchemas": {"a": {"properties": {"b": {}}}}, "properties": {"a": {}}, "unevaluatedProperties": False},
    {"allOf": [{"additionalProperties": {"type": "integer"}}], "unevaluatedProperties": False},
    {"oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"required": ["b"]}], "unevaluatedProperties": False},
]


@pytest.mark.parametrize("number", range(len(_SCHEMAS)))
def test_a_document_is_valid_where_it_is_for_jsonschema(number: int) -> None:
    schema = _SCHEMAS[number]
    values = (None, 1, "x")
    for a in values:
        for b in values:
            for c in values:
                data = {key: value for key, value in (("a", a), ("b", b), ("c", c)) if value is not None}
                expected = Draft202012Validator(schema).is_valid(data)
                assert (next(violations(schema, data), None) is None) is expected, data
