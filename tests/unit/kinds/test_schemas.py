"""The JSON Schemas that editors and other tools read: equal to the models, closed, and documented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from kaigen.config.file import CONFIG_ENTRY
from kaigen.config.lock_file import LOCK_ENTRY
from kaigen.config.overrides import OVERRIDES_ENTRY
from kaigen.config.pins import PINS_ENTRY
from kaigen.diagnostics.collector import Diagnostics
from kaigen.dialects.registry import own_kinds
from kaigen.extend.definition import DEFINITION_ENTRY
from kaigen.kinds.entry import KindEntry
from kaigen.kinds.kind import ForeignKind
from kaigen.kinds.schema import BASE_URL, combined_schema, deref, json_schema, schema_file_name
from kaigen.yaml.document import parse
from kaigen.yaml.sources import Source

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "schemas"
ENTRIES = (*own_kinds(), CONFIG_ENTRY, PINS_ENTRY, OVERRIDES_ENTRY, LOCK_ENTRY, DEFINITION_ENTRY)
EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").rglob("*.yaml"))
    # Patches and the schemas of users' kinds are not documents of kaigen's.
    if {"rendered", "patches"}.isdisjoint(path.parts) and path.name != "schema.yaml"
]

every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.key)


def nodes(node: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with where it is."""
    if isinstance(node, dict):
        if not path.endswith(("/properties", "/$defs")):
            yield path, node
        for key, value in node.items():
            if key not in {"default", "examples", "const", "enum", "required"}:
                yield from nodes(value, f"{path}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from nodes(value, f"{path}/{index}")


@every_entry
def test_the_file_is_what_the_models_say(entry: KindEntry) -> None:
    file = SCHEMAS / schema_file_name(entry)
    assert file.is_file(), "run `make docs`"
    assert json.loads(file.read_text()) == json_schema(entry), "run `make docs`"


def test_there_is_no_file_of_a_kind_that_is_gone() -> None:
    names = {schema_file_name(entry) for entry in ENTRIES} | {"kaigen.json", "catalog.json"}
    assert {file.name for file in SCHEMAS.iterdir()} == names, "run `make docs`"
    assert json.loads((SCHEMAS / "kaigen.json").read_text()) == combined_schema((*own_kinds(), OVERRIDES_ENTRY)), (
        "run `make docs`"
    )


@every_entry
def test_it_is_a_schema(entry: KindEntry) -> None:
    schema = json_schema(entry)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"{BASE_URL}/{schema_file_name(entry)}"


@every_entry
def test_every_mapping_is_closed_or_says_what_its_entries_are(entry: KindEntry) -> None:
    for path, node in nodes(json_schema(entry)):
        if node.get("type") == "object":
            assert "additionalProperties" in node, path
            assert node["additionalProperties"] is False or "properties" not in node, path


@every_entry
def test_every_field_is_described(entry: KindEntry) -> None:
    schema = json_schema(entry)
    for path, node in nodes(schema):
        for name, field in node.get("properties", {}).items():
            assert deref(schema, field).get("description", "").endswith("."), f"{path}: {name}"


@every_entry
def test_no_field_may_be_null_but_what_a_cluster_writes_so(entry: KindEntry) -> None:
    found = [path for path, node in nodes(json_schema(entry)) if "null" in (node.get("type") or [])]
    model = "KoldunMetadata" if entry.key.startswith("koldun.") else "ForeignMetadata"
    foreign = f"#/$defs/{model}/properties/creationTimestamp"
    empty = [path for path in found if any(path.endswith(f"/{name}/anyOf/1") for *_, name in entry.empty)]
    assert len(empty) == len(entry.empty)
    assert sorted(found) == sorted([*empty, *([foreign] if isinstance(entry, ForeignKind) else [])])


@every_entry
def test_examples_and_defaults_are_right_themselves(entry: KindEntry) -> None:
    schema = json_schema(entry)
    count = 0
    for path, node in nodes(schema):
        for value in [*node.get("examples", []), *([node["default"]] if "default" in node else [])]:
            here = {"$defs": schema.get("$defs", {}), **node}
            assert [error.message for error in Draft202012Validator(here).iter_errors(value)] == [], path
            count += 1
    assert count > 3


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.relative_to(ROOT / "examples").as_posix())
def test_every_example_points_its_editor_at_the_schema_that_takes_it(file: Path) -> None:
    text = file.read_text()
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    if named is None:
        # Only what somebody else wrote, and is read unchanged, names none.
        assert "kaigen.dev/" not in text, "the first line must be `# yaml-language-server: $schema=PATH`"
    schema = (file.parent / named[1]).resolve() if named else SCHEMAS / "kaigen.json"
    assert schema.parent == SCHEMAS
    resources = [(path.name, json.loads(path.read_text())) for path in SCHEMAS.glob("*.json")]
    registry: Registry[Any] = Registry().with_resources(
        (content["$id"], Resource.from_contents(content)) for _, content in resources
    )
    validator = Draft202012Validator(json.loads(schema.read_text()), registry=registry)
    documents = parse(Source(str(file), text), Diagnostics())
    assert documents
    for document in documents:
        assert [error.message for error in validator.iter_errors(document.data)] == []


def test_the_combined_schema_judges_a_document_by_its_kind() -> None:
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in map(json_schema, own_kinds())
    )
    validator = Draft202012Validator(combined_schema(own_kinds()), registry=registry)
    model = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Model", "metadata": {"name": "m"}}
    spec = {"source": {"huggingFace": {"repo": "a/b"}}, "store": {"volume": {"size": "1Gi"}}}
    assert validator.is_valid({**model, "spec": spec})
    assert not validator.is_valid({**model, "kind": "Job", "spec": spec})
    assert not validator.is_valid({**model, "spec": {}})
    assert not validator.is_valid({"kind": "Model"})
