"""Kinds defined by folders: names, schemas, defaults and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kaigen.config.load import load_config
from kaigen.dialects.registry import own_kinds
from kaigen.extend.find import folder_kinds
from kaigen.kinds.schema import combined_schema, json_schema
from tests.unit.extend.repository import KIND, SCHEMA, SPEC, compiled, messages, repository


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"kaigen.yaml": "kinds: [knds]\n"},
            "knds e KG1001 folder of kinds not found (correct `kinds` in kaigen.yaml)",
        ),
        ({"kind/kind.yaml": ""}, "kinds/thing/kind.yaml e KG0108 the file contains no document"),
        ({"kind/kind.yaml": "[a]\n"}, "kinds/thing/kind.yaml:1:1 e KG1001 kind.yaml must contain a mapping"),
        (
            {"kind/kind.yaml": KIND + "---\n" + KIND},
            "kinds/thing/kind.yaml:8:1 e KG1001 kind.yaml must contain only one document",
        ),
        ({"kind/kind.yaml": KIND.replace("summary", "sumary")}, "kind.yaml:6:1 e KG0201 unknown field `sumary`"),
        ({"kind/kind.yaml": KIND.replace("Thing", "thing")}, "kind.yaml:5:9 e KG0204 `kind: thing`"),
        ({"kind/kind.yaml": KIND.replace("acme.example/v1", "v1")}, "kind.yaml:4:15 e KG0204 `apiVersion: v1`"),
        (
            {"kind/kind.yaml": KIND.replace("acme.example/v1", "kaigen.dev/v2")},
            "kind.yaml:5:9 e KG1002 `Thing` of `kaigen.dev/v2` is reserved for kaigen",
        ),
        (
            {"kind/kind.yaml": KIND.replace("acme.example/v1", "apps/v1").replace("Thing", "Deployment")},
            "kind.yaml:5:9 e KG1002 `Deployment` of `apps/v1` is a kind of Kubernetes",
        ),
        (
            {"kinds/z/kind.yaml": KIND, "kinds/z/schema.yaml": SCHEMA, "kinds/z/templates/a.yaml.jinja": "a: b"},
            "kinds/z/kind.yaml:5:9 e KG1002 `Thing` of `acme.example/v1` is defined twice",
        ),
        (
            {"kind/schema.yaml": "type: objct\n"},
            "schema.yaml:1:7 e KG1003 not a valid JSON Schema: `type`: 'objct' is not valid",
        ),
        (
            {"kind/schema.yaml": "type: string\n"},
            "schema.yaml:1:7 e KG1003 the schema of a `spec` must describe a mapping",
        ),
        (
            {"kind/schema.yaml": "$schema: http://json-schema.org/draft-07/schema#\ntype: object\n"},
            "schema.yaml:1:10 e KG1003 a kind's schema must be JSON Schema 2020-12",
        ),
        (
            {"kind/schema.yaml": "type: object\nproperties:\n  a: {$ref: '#/$defs/a'}\n"},
            "schema.yaml:3:13 e KG1003 `#/$defs/a` is not defined in this schema",
        ),
        (
            {"kind/schema.yaml": "type: object\nproperties:\n  a: {$ref: 'file:///etc/passwd'}\n"},
            "schema.yaml:3:13 e KG1003 `file:///etc/passwd` is not defined in this schema",
        ),
        (
            {"kind/schema.yaml": "type: object\n$defs: {a: {$ref: '#/$defs/a'}}\n"},
            "schema.yaml:2:19 e KG1003 `#/$defs/a` is not defined in this schema",
        ),
        (
            {"kind/schema.yaml": "type: object\nproperties:\n  a: {pattern: '('}\n"},
            "schema.yaml:3:16 e KG1003 not a regular expression",
        ),
        (
            {"kind/schema.yaml": "type: object\npatternProperties:\n  '(': {type: string}\n"},
            "schema.yaml:3:3 e KG1003 not a regular expression of RE2: a missing `)` at position 2",
        ),
        ({"t/readme.txt": "x"}, "readme.txt e KG1004 this file is not a template"),
    ],
)
def test_an_invalid_kind_is_reported_and_its_documents_are_not(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    found = messages(repository(tmp_path, files))
    # Where the definition has another name, the kind of the document is unknown.
    assert len(found) == (2 if "KG1002 `Thing` of `kaigen" in message or "Deployment" in message else 1)
    assert message in found[0]


def test_a_kind_without_templates_is_reported(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    (folder / "kinds/thing/templates/map.yaml.jinja").unlink()
    (found,) = messages(folder)
    assert found.startswith("kinds/thing/templates e KG1004 no file name ends in `.yaml.jinja`")


def test_an_unknown_kind_is_reported_with_the_nearest_known_kind(tmp_path: Path) -> None:
    folder = repository(tmp_path, {"specs/one.yaml": SPEC.replace("Thing", "Thnig")})
    assert messages(folder) == [
        "specs/one.yaml:2:7 e KG0212 unknown kind `Thnig` in `acme.example/v1` (did you mean `Thing`?)"
    ]


@pytest.mark.parametrize(
    ("schema", "spec", "lines"),
    [
        ("", "{txt: a}", ["4:8 e KG0201 unknown field `txt` (did you mean `text`?)"]),
        ("", "{count: '2'}", ["4:15 e KG0202 `count` must be a whole number, not the text `2`"]),
        ("", "{text: 1.10}", ['4:14 e KG0202 `text` must be a string, not the number 1.1 (quote it: `text: "1.10"`)']),
        ("", "{count: 10}", ["4:15 e KG0208 `count` is 10; it must be at most 9"]),
        ("", "[]", ["4:7 e KG0202 `spec` must be a mapping, not a list"]),
        ("", "{text: }", ["4:8 e KG0209 `text` has no value"]),
        ("required: [a]", "{}", ["4:7 e KG0203 `a` is missing"]),
        ("required: [text]", "{txt: a}", ["4:8 e KG0201 unknown field `txt` (did you mean `text`?)"]),
        (
            "a: {enum: [big, small]}",
            "{a: bg}",
            ["4:11 e KG0205 `bg` is not one of the values of `a`: `big` or `small` (did"],
        ),
        ("a: {pattern: '^x+$'}", "{a: y}", ["4:11 e KG0204 `a: y` is not text that matches ^x+$"]),
        ("a: {type: array, minItems: 2}", "{a: [1]}", ["4:11 e KG0208 `a` has 1 entries; it must have at least 2"]),
        ("a: {type: string, maxLength: 2}", "{a: abc}", ["4:11 e KG0208 `a` has 3 characters; it may have at most 2"]),
        (
            "a: {anyOf: [{type: string}, {type: integer}]}",
            "{a: true}",
            ["4:11 e KG0202 `a` must be a string or a whole number, not true"],
        ),
        (
            "a: {anyOf: [{type: string}, {type: object, properties: {b: {type: integer}}}]}",
            "{a: {b: x}}",
            ["4:15 e KG0202 `b` must be a whole number, not the text `x`"],
        ),
        ("a: {not: {const: 1}}", "{a: 1}", ["4:11 e KG0210 `a`: "]),
    ],
)
def test_schema_errors_read_like_those_of_kaigen_kinds(
    tmp_path: Path, schema: str, spec: str, lines: list[str]
) -> None:
    text = SCHEMA + (f"  {schema}\n" if schema.startswith("a:") else schema)
    found = messages(
        repository(tmp_path, {"kind/schema.yaml": text, "specs/one.yaml": SPEC.replace("{text: hello}", spec)})
    )
    assert len(found) == len(lines)
    for message, line in zip(found, lines, strict=True):
        assert message.startswith(f"specs/one.yaml:{line}")


def test_defaults_are_filled_in_at_every_depth(tmp_path: Path) -> None:
    schema = (
        "type: object\nproperties:\n  text: {type: string, default: x}\n  deep: {$ref: '#/$defs/deep', default: {}}\n"
        "  list: {type: array, items: {$ref: '#/$defs/deep'}}\n"
        "$defs: {deep: {type: object, properties: {a: {default: 1}, b: {type: integer}}}}\n"
    )
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ release }}'}\ndata: {all: '{{ spec }}'}\n"
    files = {
        "kind/schema.yaml": schema,
        "t/map.yaml.jinja": template,
        "specs/one.yaml": SPEC.replace("{text: hello}", "{list: [{b: 2}]}"),
    }
    data = compiled(repository(tmp_path, files)).objects[0].body["data"]["all"]
    assert json.loads(data) == {"list": [{"b": 2, "a": 1}], "text": "x", "deep": {"a": 1}}


def test_the_schema_of_a_kind_accepts_its_documents_and_rejects_others(tmp_path: Path) -> None:
    text = (
        SCHEMA
        + "  deep: {$ref: '#/$defs/deep'}\n$defs: {deep: {type: object, properties: {me: {$ref: '#/$defs/deep'}}}}\n"
    )
    folder = repository(tmp_path, {"kind/schema.yaml": text})
    (entry,) = folder_kinds(load_config(folder)).entries
    document = {"apiVersion": "acme.example/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"text": "x"}}
    validator = Draft202012Validator(json_schema(entry))
    assert validator.is_valid(document)
    assert validator.is_valid({**document, "spec": {"deep": {"me": {"me": {}}}}})
    assert not validator.is_valid({**document, "spec": {"deep": {"me": {"me": 1}}}})
    assert not validator.is_valid({**document, "kind": "Other"})
    assert not validator.is_valid({**document, "spec": {"txt": "x"}})
    combined = combined_schema((*own_kinds(), entry), embedded=True)
    assert "acme.example.Thing" in combined["$defs"]
    assert Draft202012Validator(combined).is_valid(document)
    assert not Draft202012Validator(combined).is_valid({**document, "spec": {"txt": "x"}})
