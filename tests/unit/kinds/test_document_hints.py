"""Hints name fields that the document at hand has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kaigen.core.json_types import FieldPath
from kaigen.dialects.registry import find_kind, own_kinds
from kaigen.kinds.builtin import BUILTIN_KINDS
from kaigen.kinds.document_hints import foreign_fields, hint_for_document
from kaigen.kinds.kind import Kind

SCENARIOS = Path(__file__).parents[2] / "scenario"
KINDS = {kind.key: kind for kind in own_kinds()}
TOPOLOGY, WORKSPACE = KINDS["Topology"], KINDS["kaito.Workspace"]
ORIGINS: dict[FieldPath, FieldPath] = {
    ("spec", "auth"): ("metadata", "annotations", "kaigen.dev/api-key-secret"),
    ("spec", "shape", "nodes"): ("resource", "count"),
    ("spec", "resources"): ("resource",),
}


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("run `kaigen lock`", "run `kaigen lock`"),
        ("require a key with `auth`", "require a key with the annotation `kaigen.dev/api-key-secret`"),
        (
            "require a key with `auth`, or list the clients in `service.allowFrom`",
            "require a key with the annotation `kaigen.dev/api-key-secret`",
        ),
        ("run `kaigen lock`, or set `revision` to a commit", "run `kaigen lock`"),
        ("set `shape.nodes`", "set `resource.count`"),
        ("set `shape.nodes: 2`", "a Workspace has no field for this; in a Topology: set `shape.nodes: 2`"),
        ("set `resources.memory`", "a Workspace has no field for this; in a Topology: set `resources.memory`"),
        ("set `resource.count`", "set `resource.count`"),
    ],
)
def test_a_hint_names_what_the_document_has(hint: str, expected: str) -> None:
    assert hint_for_document(hint, TOPOLOGY, WORKSPACE, ORIGINS) == expected
    assert hint_for_document(hint, TOPOLOGY, TOPOLOGY, {}) == hint


def hints_of_scenarios() -> Iterator[tuple[str, Kind, str]]:
    """Yield each hint that a scenario prints about a spec: the scenario, the kind of the document, and the hint."""
    for path in sorted(SCENARIOS.glob("*/**/*.txt")):
        files: dict[str, str] = {}
        place, name = "", ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("--- "):
                name = line.removeprefix("--- ")
                files[name] = ""
            elif line.startswith(("$ ", "=== ")):
                name = ""
            elif name:
                files[name] += f"{line}\n"
            elif found := re.match(r"(\S+\.yaml):(\d+)(?::\d+)?: (?:error|warning)\[", line):
                place = _document(files.get(found[1], ""), int(found[2]))
            elif (found := re.match(r" +\+? ?= hint: (.*)", line)) and (kind := _kind(place)) is not None:
                yield str(path.relative_to(SCENARIOS)), kind, found[1]


def _document(text: str, number: int) -> str:
    lines = text.splitlines()
    before = [index for index, line in enumerate(lines[:number]) if line == "---"]
    start = before[-1] + 1 if before else 0
    return "\n".join(lines[start:]).partition("\n---\n")[0]


def _kind(text: str) -> Kind | None:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    return find_kind(data.get("apiVersion"), data.get("kind")) if isinstance(data, dict) else None


def test_no_hint_of_a_scenario_names_a_field_of_another_kind() -> None:
    found = [*hints_of_scenarios()]
    assert len(found) > 100
    wrong = [
        (name, kind.key, hint)
        for name, kind, hint in found
        for other in BUILTIN_KINDS
        if foreign_fields(hint, other, kind)
    ]
    assert not wrong
