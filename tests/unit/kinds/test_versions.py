"""The fields of a canary are those of its Topology."""

from __future__ import annotations

from typing import Any

from kaigen.dialects.registry import find_kind
from kaigen.kinds.block import document_name
from kaigen.kinds.canary import OWN, Canary
from kaigen.kinds.schema import branches, deref, json_schema
from kaigen.kinds.topology import TopologySpec

_LEFT_OUT = {"description", "default", "examples"}


def block_of(root: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return the properties of a block."""
    node = root
    for step in path:
        node = deref(root, next(each for each in branches(root, node) if "properties" in each)["properties"][step])
    (found,) = [each for each in branches(root, node) if "properties" in each]
    return dict(found["properties"])


def meaning(root: dict[str, Any], node: dict[str, Any]) -> str:
    """Return what a field accepts, where null is not an own choice."""
    options = [{key: each[key] for key in each if key not in _LEFT_OUT} for each in branches(root, node)]
    return str(sorted(str(each) for each in options if each != {"type": "null"}))


def test_fields_of_a_canary_accept_what_those_of_the_topology_accept() -> None:
    entry = find_kind("kaigen.dev/v1alpha1", "Topology")
    assert entry is not None
    root = json_schema(entry)
    spec, canary = block_of(root, "spec"), block_of(root, "spec", "canary")
    version = set(Canary.__struct_fields__) - OWN
    assert version <= set(TopologySpec.__struct_fields__)
    for name in version:
        key = document_name(Canary, name)
        assert meaning(root, canary[key]) == meaning(root, spec[key]), key
