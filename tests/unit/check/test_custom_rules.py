"""Rules in CEL of custom kinds, of objects and of their changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kaigen.check import codes
from kaigen.check.custom_rules import custom_findings, default_findings
from kaigen.check.schema_check import check_object
from tests.cases import AppCase, app_cases
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


def test_a_default_in_a_list_that_is_one_value_is_a_warning_with_the_value() -> None:
    route = changed("HTTPRoute", parentRefs=[{"name": "public", "kind": "Gateway"}])
    rules = route["spec"]["rules"]
    rules[:] = [
        {"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "backendRefs": [{"name": "a", "port": 1}]}
    ]
    assert [(each.where, each.hint) for each in default_findings(route)] == [
        ("spec.parentRefs[0]", 'set group: "gateway.networking.k8s.io"'),
        ("spec.rules[0].backendRefs[0]", 'set group: ""'),
        ("spec.rules[0].backendRefs[0]", 'set kind: "Service"'),
        ("spec.rules[0].backendRefs[0]", "set weight: 1"),
    ]


def test_the_status_that_a_webhook_adds_to_a_claim_is_a_warning() -> None:
    groups = example("LeaderWorkerSet")
    groups["spec"]["leaderWorkerTemplate"]["volumeClaimTemplates"] = [{"metadata": {"name": "cache"}, "spec": {}}]
    assert [(each.where, each.hint) for each in default_findings(groups)] == [
        ("spec.leaderWorkerTemplate.volumeClaimTemplates[0]", "set status: {}")
    ]


def test_a_default_in_a_list_with_keys_or_outside_of_lists_is_no_difference() -> None:
    gateway = changed("Gateway", listeners=[{"name": "http", "port": 80, "protocol": "HTTP"}], addresses=[])
    assert list(default_findings(gateway)) == []
    assert list(default_findings(example("ClusterQueue"))) == []


@pytest.mark.parametrize("case", app_cases(), ids=lambda case: case.name)
def test_kaigen_writes_the_defaults_that_argocd_would_see_as_differences(case: AppCase) -> None:
    found = [str(each) for item in case.compiled.objects for each in default_findings(item.body)]
    assert found == []
