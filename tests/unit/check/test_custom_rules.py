"""Rules in CEL of custom kinds, of objects and of their changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kaigen.check import codes
from kaigen.check.custom_rules import custom_findings
from kaigen.check.schema_check import check_object
from tests.unit.check import custom_rules
from tests.unit.check.api_rules import Refused
from tests.unit.check.example_objects import example, label, objects


def changed(kind: str, **spec: Any) -> dict[str, Any]:
    obj = example(kind)
    obj["spec"].update(spec)
    return obj


@pytest.mark.parametrize("obj", objects(), ids=label)
def test_a_valid_object_breaks_no_rule(obj: dict[str, Any]) -> None:
    assert list(custom_findings(obj)) == []


@pytest.mark.parametrize("case", custom_rules.CASES, ids=lambda case: f"{case.kind}-{case.message}")
def test_an_object_that_breaks_a_rule_is_an_error_at_its_place(case: Refused) -> None:
    found = [(each.code, each.where, each.message) for each in check_object(case.body())]
    where = case.where[1:] if case.where.startswith(".spec") else case.field + case.where
    assert (codes.CUSTOM_RULE, where, case.message) in found


def test_defaults_are_set_before_a_rule_is_asked() -> None:
    # The default of reclaimWithinCohort is Never.
    borrowing = {"borrowWithinCohort": {"policy": "LowerPriority"}}
    (found,) = custom_findings(changed("ClusterQueue", preemption=borrowing))
    assert found.message == "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
    assert list(custom_findings(changed("ClusterQueue", preemption={**borrowing, "reclaimWithinCohort": "Any"}))) == []


def test_a_rule_sees_no_object_that_its_schema_refuses() -> None:
    broken = changed("ScaledObject", minReplicaCount=5, maxReplicaCount="four")
    assert codes.CUSTOM_RULE not in {each.code for each in check_object(broken)}


def test_a_rule_of_changes_speaks_of_changes_only() -> None:
    old = example("NodePool")
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["nodeClassRef"]["group"] = "karpenter.azure.com"
    assert list(custom_findings(new)) == []
    (found,) = custom_findings(new, old)
    assert (found.where, found.message) == (
        "spec.template.spec.nodeClassRef",
        "nodeClassRef.group is immutable",
    )
    assert list(custom_findings(old, copy.deepcopy(old))) == []


def test_a_field_that_is_new_is_not_compared() -> None:
    queue: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "q"},
        "spec": {},
    }
    named = {**queue, "spec": {"clusterQueue": "a"}}
    assert list(custom_findings(named, queue)) == []
    assert [each.where for each in custom_findings({**queue, "spec": {"clusterQueue": "b"}}, named)] == [
        "spec.clusterQueue"
    ]
