"""Hints for fields that people know from Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kaigen.kinds import habits

SCHEMAS = Path(__file__).parents[3] / "schemas"
OWN = ("dataset", "job", "model", "notebook", "topology")


def blocks(tree: Any) -> Iterator[frozenset[str]]:
    """Return the names of the fields of each block of a schema."""
    if isinstance(tree, dict):
        if isinstance(tree.get("properties"), dict):
            yield frozenset(tree["properties"])
        for each in tree.values():
            yield from blocks(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from blocks(each)


KNOWN = {block for name in OWN for block in blocks(json.loads((SCHEMAS / f"{name}.json").read_text()))}


@pytest.mark.parametrize("name", [*habits._NAMES, *habits._ABSENT])
def test_each_hint_is_for_a_block_that_exists(name: str) -> None:
    assert any(habits.usual_field(name, block) for block in KNOWN if name not in block)


def test_a_field_is_named_only_where_the_block_has_it() -> None:
    assert habits.usual_field("backoffLimit", ["image", "retries"]) == "write `retries`"
    assert habits.usual_field("backoffLimit", ["image"]) == ""
    assert habits.usual_field("other", ["image", "retries"]) == ""
