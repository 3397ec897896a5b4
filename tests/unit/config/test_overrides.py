"""Overrides, patches and objects that clusters have: what their entries in kaigen.yaml mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import ValidationError

from kaigen.config.block_settings import ObjectPatch
from kaigen.config.external import ExternalEntry
from kaigen.config.overrides import OverrideEntry, override_settings
from kaigen.config.patches import PatchEntry, patch_settings
from kaigen.config.settings import Override
from kaigen.diagnostics.collector import Diagnostics
from kaigen.kinds.block import read_block
from tests.unit.config.reports import problems_of

AT = ("environments", "prod", "overrides", 0)


@pytest.mark.parametrize(
    ("entry", "override"),
    [
        ({"spec": {"a": None}}, Override((), (), {}, {"spec": {"a": None}}, AT)),
        ({"match": {"app": "a"}, "spec": {"a": 1}}, Override(("a",), (), {}, {"spec": {"a": 1}}, AT)),
        (
            {"match": {"app": ["a", "b/*"], "kind": ["Model", "Job"], "labels": {"x": "y"}}, "spec": {"a": 1}},
            Override(("a", "b/*"), ("Model", "Job"), {"x": "y"}, {"spec": {"a": 1}}, AT),
        ),
        ({"match": {"kind": "Model"}, "spec": {"a": 1}}, Override((), ("Model",), {}, {"spec": {"a": 1}}, AT)),
        (
            {"metadata": {"labels": {"a": None}}},
            Override((), (), {}, {"metadata": {"labels": {"a": None}}}, AT),
        ),
        (
            {"metadata": {"annotations": {"a": "b"}}},
            Override((), (), {}, {"metadata": {"annotations": {"a": "b"}}}, AT),
        ),
        (
            {"resource": {"a": 1}, "inference": {"b": 2}, "tuning": {"c": 3}},
            Override((), (), {}, {"resource": {"a": 1}, "inference": {"b": 2}, "tuning": {"c": 3}}, AT),
        ),
    ],
)
def test_an_override_has_its_conditions_and_the_parts_that_it_sets(entry: dict[str, Any], override: Override) -> None:
    problems = Diagnostics()
    assert override_settings([read_block(OverrideEntry, entry)], [AT], None, problems) == (override,)
    assert len(problems) == 0


def test_an_override_knows_its_environment() -> None:
    shared, own = (Override((), (), {}, {}, at) for at in (("overrides", 0), AT))
    nearby = Override((), (), {}, {}, ("overrides", 0), file="specs/team/overrides/staging.yaml", folder="specs/team")
    assert (shared.environment, own.environment, nearby.environment) == ("", "prod", "staging")


@pytest.mark.parametrize("entry", ["{match: {app: a}}", "{spec: {}}", "{metadata: {labels: {}, annotations: {}}}"])
def test_an_override_that_changes_nothing_is_an_error(tmp_path: Path, entry: str) -> None:
    text = f"overrides:\n- spec: {{a: 1}}\n- {entry}\n"
    assert problems_of(tmp_path, text) == [
        "kaigen.yaml:3:3 KG0710 this override changes nothing | set `spec` or `metadata`"
    ]


@pytest.mark.parametrize("count", [0, 2])
def test_each_entry_has_a_place(count: int) -> None:
    places = [("overrides", index) for index in range(count)]
    with pytest.raises(ValueError, match=r"zip\(\)"):
        override_settings([OverrideEntry(spec={"a": 1})], places, None, Diagnostics())
    with pytest.raises(ValueError, match=r"zip\(\)"):
        patch_settings([read_block(PatchEntry, {"target": {"app": "a"}, "patch": {}})], places)


@pytest.mark.parametrize(
    ("match", "text"),
    [({"app": "A"}, "'A' does not match"), ({"kind": "a b"}, "'a b' does not match")],
)
def test_a_condition_that_is_a_text_is_a_name_or_glob(match: dict[str, str], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        read_block(OverrideEntry, {"match": match, "spec": {"a": 1}})


@pytest.mark.parametrize(
    ("entry", "patch", "file"),
    [
        (
            {"target": {"app": "a"}, "patch": "p.yaml"},
            ObjectPatch("a", None, None, "p.yaml", ("patches", 0)),
            "p.yaml",
        ),
        (
            {"target": {"app": "b/*", "kind": "Deployment", "name": "x-*"}, "patch": {"spec": None}},
            ObjectPatch("b/*", "Deployment", "x-*", {"spec": None}, ("patches", 0)),
            None,
        ),
        (
            {"target": {"app": "a"}, "patch": [{"op": "remove", "path": "/a"}]},
            ObjectPatch("a", None, None, [{"op": "remove", "path": "/a"}], ("patches", 0)),
            None,
        ),
    ],
)
def test_a_patch_has_its_target_and_may_be_a_file(entry: dict[str, Any], patch: ObjectPatch, file: str | None) -> None:
    (found,) = patch_settings([read_block(PatchEntry, entry)], [("patches", 0)])
    assert (found, found.file) == (patch, file)


def test_a_patch_in_a_file_is_in_the_repository() -> None:
    with pytest.raises(ValidationError, match=r"'\.\./a' does not match"):
        read_block(PatchEntry, {"target": {"app": "a"}, "patch": "../a"})


@pytest.mark.parametrize(
    ("namespace", "place", "kind", "name", "expected"),
    [
        ("n", "n", "Secret", "a-1", True),
        ("n", "", "Secret", "a-1", True),
        (None, "x", "Secret", "a-1", True),
        ("n", "x", "Secret", "a-1", False),
        ("n", "n", "ConfigMap", "a-1", False),
        ("n", "n", "Secret", "b", False),
    ],
)
def test_an_external_object_is_found_by_kind_namespace_and_glob(
    namespace: str | None, place: str, kind: str, name: str, expected: bool
) -> None:
    assert ExternalEntry(kind="Secret", name="a-*", namespace=namespace).is_named(kind, place, name) is expected
