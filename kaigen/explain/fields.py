"""Fields of a kind as text: what `kaigen explain KIND.PATH` prints."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from kaigen.diagnostics.errors import KaigenError
from kaigen.diagnostics.suggest import did_you_mean, nearest
from kaigen.kinds.entry import KindEntry
from kaigen.kinds.schema import branches, deref, entries, json_schema

Schema = dict[str, Any]

_DEEPEST = 12
"""Most levels of `--recursive`; a schema may contain itself."""


class UnknownFieldError(KaigenError):
    """A kind has no field at a path. The message names the nearest one."""


def field_lines(entry: KindEntry, path: Sequence[str], *, recursive: bool = False) -> list[str]:
    """Return the explanation of a kind, or of a field of it.

    Args:
        entry: the kind.
        path: names of the fields from the top of a document. Lists and keys of maps may be left out.
        recursive: list the fields of all levels, without descriptions.

    Raises:
        UnknownFieldError: the kind has no such field.
    """
    root = json_schema(entry)
    node: Schema = root
    for depth, name in enumerate(path):
        found = _field(root, node, name)
        if found is None:
            place = ".".join([entry.key, *path[:depth]])
            raise UnknownFieldError(f"{place} has no field {name}; {_nearest(entry, root, node, name)}")
        node = found
    lines = [f"KIND:     {entry.kind}", f"VERSION:  {entry.api_version}"]
    if path:
        lines.append(f"FIELD:    {'.'.join(path)} <{type_name(root, node)}>")
    lines.append("")
    lines += [f"  {line}" for line in textwrap.wrap(node.get("description", ""), 96) or [""]]
    lines += [f"  {fact}" for fact in facts(node)]
    if recursive:
        tree = list(_tree(root, node, 1))
        return [*lines, "", "FIELDS:", *tree] if tree else lines
    return [*lines, *_fields(root, node)]


def type_name(root: Schema, node: Schema) -> str:
    """Return the type of a field in a few words."""
    names = []
    for branch in branches(root, node):
        kind = branch.get("type", "object" if "properties" in branch else "any")
        if isinstance(kind, list):
            kind = "quantity" if kind == ["string", "number"] else " | ".join(kind)
        if kind == "array":
            kind = f"[]{type_name(root, deref(root, branch.get('items', {})))}"
        elif kind == "object" and (inner := entries(branch)) is not None:
            kind = f"map of {type_name(root, deref(root, inner))}"
        names.append(kind)
    return " | ".join(dict.fromkeys(names))


def _field(root: Schema, node: Schema, name: str) -> Schema | None:
    """Return the field of a mapping, of the entries of a list or map, or any entry of a map by its key."""
    for known, field, _ in nested_fields(root, node):
        if known == name:
            return field
    for branch in branches(root, node):
        inner = entries(branch)
        if inner is not None:
            return deref(root, inner)
    return None


def nested_fields(root: Schema, node: Schema, depth: int = 0) -> Iterator[tuple[str, Schema, bool]]:
    """Yield the fields of a mapping, and those of the entries of a list or map: name, schema, whether required."""
    if depth > _DEEPEST:
        return
    for branch in branches(root, node):
        required = branch.get("required", ())
        for name, field in branch.get("properties", {}).items():
            yield name, deref(root, field), name in required
        for inner in (branch.get("items"), entries(branch)):
            if isinstance(inner, dict):
                yield from nested_fields(root, inner, depth + 1)


def _nearest(entry: KindEntry, root: Schema, node: Schema, name: str) -> str:
    """Return a hint for a field that a mapping does not have."""
    known = [field for field, _, _ in nested_fields(root, node)]
    if node is root and not nearest(name, known):
        # Users often omit `spec`, which contains most fields.
        spec = root.get("properties", {}).get("spec", {})
        below = nearest(name, [field for field, _, _ in nested_fields(root, spec)])
        if below:
            return f"did you mean `{entry.key}.spec.{below[0]}`?"
    return did_you_mean(name, known) or ("fields: " + ", ".join(known) if known else "it has no fields")


def facts(node: Schema) -> Iterator[str]:
    """Yield default, allowed values, limits and an example of a field."""
    yield from _choices(node)
    bounds = [
        f"{word} {node[name]}" for name, word in (("minimum", "at least"), ("maximum", "at most")) if name in node
    ]
    if bounds:
        yield "Range: " + ", ".join(bounds)
    if "maxLength" in node:
        yield f"Length: at most {node['maxLength']}"
    if node.get("examples"):
        yield "Example: " + json.dumps(node["examples"][0], ensure_ascii=False)


def _choices(node: Schema) -> Iterator[str]:
    if "const" in node:
        yield f"Value: {node['const']}"
        return
    if "default" in node and node["default"] not in ({}, []):
        yield f"Default: {json.dumps(node['default'], ensure_ascii=False)}"
    if node.get("enum"):
        yield "Values: " + ", ".join(map(str, node["enum"]))


def _fields(root: Schema, node: Schema, depth: int = 0) -> Iterator[str]:
    """Yield a list of fields for each mapping that a value may be or contain."""
    if depth > _DEEPEST:
        return
    for branch in branches(root, node):
        for inner in (branch.get("items"), entries(branch)):
            if isinstance(inner, dict):
                yield from _fields(root, inner, depth + 1)
        if "properties" not in branch:
            continue
        required = set(branch.get("required", []))
        choice = [name for option in branch.get("oneOf", []) for name in option.get("required", [])]
        yield ""
        yield "FIELDS:" if not choice else f"FIELDS (exactly one of {', '.join(choice)}):"
        for name, field in branch["properties"].items():
            full = deref(root, field)
            marker = " -required-" if name in required else ""
            yield f"  {name} <{type_name(root, full)}>{marker}"
            for line in textwrap.wrap(full.get("description", ""), 92):
                yield f"      {line}"
            yield from (f"      {fact}" for fact in _choices(full))


def _tree(root: Schema, node: Schema, level: int) -> Iterator[str]:
    """Yield every field below a value, indented by its level."""
    if level > _DEEPEST:
        return
    for branch in branches(root, node):
        required = set(branch.get("required", []))
        for name, field in branch.get("properties", {}).items():
            full = deref(root, field)
            marker = " -required-" if name in required else ""
            yield f"{'  ' * level}{name} <{type_name(root, full)}>{marker}"
            yield from _tree(root, full, level + 1)
        for inner in (branch.get("items"), entries(branch)):
            if isinstance(inner, dict):
                yield from _tree(root, inner, level)
