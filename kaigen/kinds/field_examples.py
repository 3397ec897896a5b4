"""What to write for a missing field, from the examples of a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.core.json_types import Json
from kaigen.kinds.schema import branches, deref, entries

_DEEPEST = 3
"""Levels of blocks in an example."""


def example_of(root: dict[str, Any], field: Mapping[str, Any], depth: int = 0) -> Json:
    """Return an example of a field; None if the schema has none.

    Args:
        root: the schema with the definitions.
        field: the schema of the field.
        depth: how many blocks it is in.
    """
    if examples := field.get("examples"):
        example: Json = examples[0]
        return example
    options = list(branches(root, dict(field)))
    for option in options:
        choices: list[Json] = option.get("enum", [option["const"]] if "const" in option else [])
        if choices:
            return choices[0]
    blocks = [option for option in options if option.get("required") and not entries(option)]
    if not blocks or depth == _DEEPEST:
        return None
    fields = blocks[0]["properties"]
    needed = {name: example_of(root, fields.get(name, {}), depth + 1) for name in blocks[0]["required"]}
    return None if None in needed.values() else needed


def needed_fields(root: dict[str, Any], field: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the fields to write into a block, and how many: `one of` and `some of` them, or empty for all.

    Args:
        root: the schema with the definitions.
        field: the schema of the block.
    """
    blocks = [each for each in branches(root, dict(field)) if "properties" in each]
    if any(entries(deref(root, each)) for each in blocks):
        return [], ""
    if required := [name for each in blocks for name in each.get("required", ())]:
        return required, ""
    exclusive = [name for each in blocks for option in each.get("oneOf", ()) for name in option.get("required", ())]
    known = [name for each in blocks for name in each["properties"]]
    return (exclusive, "one of") if exclusive else (known, "some of" if known else "")
