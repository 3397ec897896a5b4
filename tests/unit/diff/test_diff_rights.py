"""The rules of a role are compared as sets of rights: how they are written down has no effect."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.diff.model import ABSENT
from tests.unit.diff.diff_cases import difference, only_object

GET = ["get"]


def rule(resources: list[str], verbs: list[str], group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **more}


def role(*rules: Any) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": "team-a"},
        "rules": list(rules),
    }


Fields = list[tuple[str, Any, Any]]

CHANGES: dict[str, tuple[list[Any], list[Any], Fields]] = {
    "one more kind": (
        [rule(["pods", "services"], GET), rule(["jobs"], GET, "batch")],
        [rule(["configmaps", "pods", "services"], GET), rule(["jobs"], GET, "batch")],
        [("rules[configmaps]", ABSENT, ["get"])],
    ),
    "one kind less, and its rule with it": (
        [rule(["jobs"], GET, "batch"), rule(["pods"], GET)],
        [rule(["pods"], GET)],
        [("rules[jobs.batch]", ["get"], ABSENT)],
    ),
    "a rule in front": (
        [rule(["pods"], GET), rule(["services"], GET)],
        [rule(["leases"], GET, "coordination.k8s.io"), rule(["pods"], GET), rule(["services"], GET)],
        [("rules[leases.coordination.k8s.io]", ABSENT, ["get"])],
    ),
    "one more verb": (
        [rule(["pods"], GET)],
        [rule(["pods"], ["list", "get"])],
        [("rules[pods]", ["get"], ["get", "list"])],
    ),
    "one verb less": (
        [rule(["pods"], ["get", "list"])],
        [rule(["pods"], ["list"])],
        [("rules[pods]", ["get", "list"], ["list"])],
    ),
    "a name": (
        [rule(["secrets"], GET, resourceNames=["a"])],
        [rule(["secrets"], GET, resourceNames=["a", "b"])],
        [("rules[secrets b]", ABSENT, ["get"])],
    ),
    "all names": (
        [rule(["secrets"], GET, resourceNames=["a"])],
        [rule(["secrets"], GET)],
        [("rules[secrets]", ABSENT, ["get"]), ("rules[secrets a]", ["get"], ABSENT)],
    ),
    "a URL": ([], [{"nonResourceURLs": ["/metrics"], "verbs": GET}], [("rules[/metrics]", ABSENT, ["get"])]),
    "another group": (
        [rule(["ingresses"], GET, "extensions")],
        [rule(["ingresses"], GET, "networking.k8s.io")],
        [("rules[ingresses.extensions]", ["get"], ABSENT), ("rules[ingresses.networking.k8s.io]", ABSENT, ["get"])],
    ),
    "a resource and a group that read the same": (
        [rule(["jobs.batch"], GET)],
        [rule(["jobs"], GET, "batch")],
        [("rules[jobs.batch]", ["get"], ABSENT), ("rules[jobs.batch]", ABSENT, ["get"])],
    ),
    "a field that is not of Kubernetes": (
        [rule(["pods"], GET)],
        [rule(["pods"], GET, note="x")],
        [("rules[0].note", ABSENT, "x")],
    ),
    "verbs that are not a list": (
        [rule(["pods"], GET)],
        [{"apiGroups": [""], "resources": ["pods"], "verbs": "get"}],
        [("rules[0].verbs", ["get"], "get")],
    ),
    "no map": ([rule(["pods"], GET)], ["x"], [("rules[0]", rule(["pods"], GET), "x")]),
    "more rights than are compared": (
        [rule([f"r{n}" for n in range(10_001)], GET)],
        [rule([f"r{n}" for n in range(10_001)], ["list"])],
        [("rules[0].verbs[0]", "get", "list")],
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_right_is_one_field(what: str) -> None:
    old, new, expected = CHANGES[what]
    change = only_object(difference(role(*old), role(*new)))
    assert [(field.path, field.old, field.new) for field in change.fields] == expected


SAME: dict[str, tuple[list[Any], list[Any]]] = {
    "resources in another order": ([rule(["a", "b"], GET)], [rule(["b", "a"], GET)]),
    "rules in another order": ([rule(["a"], GET), rule(["b"], ["list"])], [rule(["b"], ["list"]), rule(["a"], GET)]),
    "rules that are split": ([rule(["a", "b"], GET)], [rule(["a"], GET), rule(["b"], GET)]),
    "a rule twice": ([rule(["a"], GET)], [rule(["a"], GET), rule(["a"], GET)]),
    "a rule without verbs": ([rule(["a"], GET)], [rule(["a"], GET), rule(["b"], [])]),
}


@pytest.mark.parametrize("what", SAME)
def test_the_same_rights_are_no_change(what: str) -> None:
    old, new = SAME[what]
    change = difference(role(*old), role(*new))
    assert (change.apps, change.formatting_only) == ((), 1)
