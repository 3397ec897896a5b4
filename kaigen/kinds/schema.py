"""JSON Schemas of the kinds, generated from their models, and lookups in them by path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

from kaigen.kinds.block_schema import block_schema
from kaigen.kinds.entry import KindEntry

BASE_URL = "https://kaigen.dev/schemas"


def document_schema(entry: KindEntry) -> dict[str, Any]:
    """Return the closed JSON Schema (2020-12) of a kind's documents."""
    schema = block_schema(entry.model())
    for path in entry.empty:
        schema = _with_null(schema, path)
    spec = entry.spec_schema()
    if spec is None:
        return schema
    fields = schema["properties"]
    own = {
        "spec": dict(spec),
        "apiVersion": {**fields["apiVersion"], "const": entry.api_version},
        "kind": {**fields["kind"], "const": entry.kind},
    }
    summary = entry.summary[:1].upper() + entry.summary[1:].rstrip(".") + "."
    return {**schema, "description": summary, "properties": {**fields, **own}}


def _with_null(schema: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a schema that also allows null in one field."""
    root = deepcopy(schema)
    node = root
    for name in path[:-1]:
        node = deref(root, node["properties"][name])
    value = dict(node["properties"][path[-1]])
    described = {"description": value.pop("description")} if "description" in value else {}
    node["properties"][path[-1]] = {"anyOf": [value, {"type": "null"}], **described}
    return root


@cache
def json_schema(entry: KindEntry) -> dict[str, Any]:
    """Return the JSON Schema of a kind's documents with its name, for editors and other tools."""
    schema = document_schema(entry)
    required = list(dict.fromkeys(["apiVersion", "kind", *schema.get("required", [])]))
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{BASE_URL}/{schema_file_name(entry)}",
        "title": f"{entry.kind} ({entry.api_version})",
    }
    return {**head, **schema, "required": required}


def schema_file_name(entry: KindEntry) -> str:
    """Return the name of a kind's schema file in `schemas/`."""
    return f"{entry.key.lower().replace('.', '-')}.json"


@cache
def combined_schema(kinds: tuple[KindEntry, ...], *, embedded: bool = False) -> dict[str, Any]:
    """Return one schema for documents of all kinds, chosen by `apiVersion` and `kind`; for editors.

    Args:
        kinds: every kind that kaigen reads.
        embedded: include the schemas of the kinds instead of naming their files.
    """
    branches = [
        {
            "if": {
                "properties": {"apiVersion": {"const": entry.api_version}, "kind": {"const": entry.kind}},
                "required": ["apiVersion", "kind"],
            },
            "then": {"$ref": schema_file_name(entry)},
        }
        for entry in kinds
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{BASE_URL}/kaigen.json",
        "title": "A document that kaigen reads",
        "type": "object",
        "required": ["apiVersion", "kind"],
        "allOf": branches,
        **({"$defs": {entry.key: json_schema(entry) for entry in kinds}} if embedded else {}),
    }


def deref(root: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a node with its reference resolved."""
    while "$ref" in node:
        target: Any = root
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def branches(root: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schema itself, or each of its alternatives."""
    node = deref(root, node)
    options = [option for option in node.get("oneOf", []) if set(option) != {"required"}] or node.get("anyOf", [])
    if not options:
        yield node
    for option in options:
        yield from branches(root, option)


def entries(node: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of the entries of a map; None when it is not a map."""
    for field in ("additionalProperties", "patternProperties"):
        inner = node.get(field)
        if isinstance(inner, dict):
            found: dict[str, Any] = next(iter(inner.values())) if field == "patternProperties" else inner
            return found
    return None


def step(root: dict[str, Any], node: dict[str, Any], key: str | int) -> dict[str, Any] | None:
    """Return the schema of one entry of a mapping or sequence; None when there is none."""
    for branch in branches(root, node):
        if isinstance(key, int):
            if "items" in branch:
                return deref(root, branch["items"])
            continue
        if key in branch.get("properties", {}):
            return deref(root, branch["properties"][key])
        inner = entries(branch)
        if inner is not None:
            return deref(root, inner)
    return None


def walk(root: dict[str, Any], path: Sequence[str | int]) -> dict[str, Any] | None:
    """Return the schema at a path of a document; None when there is none."""
    node: dict[str, Any] | None = root
    for key in path:
        if node is None:
            return None
        node = step(root, node, key)
    return node


def field_names(root: dict[str, Any], path: Sequence[str | int]) -> list[str]:
    """Return the names of the fields that a mapping at a path may have."""
    node = walk(root, path)
    if node is None:
        return []
    return [name for branch in branches(root, node) for name in branch.get("properties", {})]
