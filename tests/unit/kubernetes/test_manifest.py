"""Objects are read whatever the types of their fields are."""

from __future__ import annotations

import pytest

from kaigen.kubernetes.manifest import Identity, entries, group_of, identity_of, mapping, names_of, text


@pytest.mark.parametrize(
    ("obj", "identity"),
    [
        (
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "b"}},
            Identity("Service", "b", "a"),
        ),
        ({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}, Identity("Job.batch", "", "a")),
        ({"apiVersion": "batch/v1", "kind": "Job", "metadata": None}, Identity("Job.batch", "", "")),
        ({"apiVersion": 1, "kind": "Job"}, Identity("Job", "", "")),
        ({"metadata": {"name": 7, "namespace": None}}, Identity("None", "", "7")),
    ],
)
def test_the_identity_of_an_object_is_its_type_namespace_and_name(obj: dict[str, object], identity: Identity) -> None:
    assert identity_of(obj) == identity
    assert identity_of(obj).kind == identity.type.split(".")[0]


def test_the_core_group_is_empty() -> None:
    assert group_of({"apiVersion": "v1"}) == ""
    assert group_of({"apiVersion": "apps/v1"}) == "apps"
    assert group_of({"apiVersion": ["apps/v1"]}) == ""
    assert group_of({}) == ""


def test_values_of_another_type_are_empty() -> None:
    assert (mapping({"a": 1}), mapping([1]), mapping(None)) == ({"a": 1}, {}, {})
    assert (text("a"), text(1), text(None)) == ("a", "", "")
    assert entries([{"a": 1}, 2, {}]) == [(0, {"a": 1}), (2, {})]
    assert entries({"a": 1}) == []
    assert names_of([{"name": "a"}, {"name": 1}, {}, "b", {"name": "c"}]) == {"a", "c"}
    assert names_of("ab") == set()
