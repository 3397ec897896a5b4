"""Every kind declares on its fields which of them are promoted between environments."""

from __future__ import annotations

import pytest

from kaigen.diagnostics.problem import dotted_path
from kaigen.dialects.registry import find_kind, own_kinds
from kaigen.environments.match import parse_dotted
from kaigen.kinds.block import read_block
from kaigen.kinds.entry import KindEntry
from kaigen.kinds.promotable import is_promotable, promotable_fields, promotable_values
from kaigen.kinds.schema import json_schema, walk


@pytest.mark.parametrize("entry", own_kinds(), ids=lambda entry: entry.key)
def test_a_promotable_field_is_a_field_of_the_kind(entry: KindEntry) -> None:
    for name in promotable_fields(entry.model()):
        path = [0 if part == "[]" else part for part in name.replace("[]", ".[]").split(".")]
        assert walk(json_schema(entry), path) is not None, name


@pytest.mark.parametrize("entry", own_kinds(), ids=lambda entry: entry.key)
def test_every_image_and_every_revision_of_a_kind_is_promotable(entry: KindEntry) -> None:
    text = str(sorted(promotable_fields(entry.model())))
    for name in ("image", "revision"):
        found = _named(json_schema(entry), name)
        assert not found or name in text


def _named(node: object, name: str) -> bool:
    if isinstance(node, dict):
        field = node.get("properties", {}).get(name)
        used = field is not None and not str(field.get("description", "")).endswith("; ignored.")
        return used or any(_named(value, name) for value in node.values())
    return any(_named(item, name) for item in node) if isinstance(node, list) else False


def test_values_are_found_with_their_defaults_and_an_image_has_one_name_in_both_forms() -> None:
    entry = find_kind("kaigen.dev/v1alpha1", "Job")
    assert entry is not None
    for image in ("a:1", {"ref": "a:1"}):
        block = read_block(
            entry.model(),
            {
                "apiVersion": "kaigen.dev/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "a"},
                "spec": {"image": image, "model": {"source": {"huggingFace": {"repo": "a/b"}}}},
            },
        )
        assert {found.name: found.value for found in promotable_values(block)} == {
            "spec.image": "a:1",
            "spec.model.source.huggingFace.repo": "a/b",
            "spec.model.source.huggingFace.revision": "main",
        }


@pytest.mark.parametrize("path", [("spec", "image"), ("spec", "roles", 0, "image", "ref"), ("a", 1, 2)])
def test_a_dotted_name_is_read_back(path: tuple[str | int, ...]) -> None:
    assert parse_dotted(dotted_path(path)) == path


def test_images_of_further_containers_are_promoted_by_their_names() -> None:
    entry = find_kind("kaigen.dev/v1alpha1", "Job")
    assert entry is not None
    spec = {"image": "a:1", "sidecars": {"log-shipper": {"image": {"ref": "b:1"}}}}
    document = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec}
    found = {item.name: item.value for item in promotable_values(read_block(entry.model(), document))}
    assert found == {"spec.image": "a:1", "spec.sidecars.log-shipper.image": "b:1"}
    assert all(is_promotable(entry.model(), name) for name in found)
    assert not is_promotable(entry.model(), "spec.sidecars.image")
