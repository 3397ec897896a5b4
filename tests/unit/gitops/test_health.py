"""Argo CD's Lua and Flux's CEL say the same of every kind, by a real Lua 5.1 and a real CEL."""

from __future__ import annotations

from typing import Any

import celpy
import pytest
from celpy.adapter import json_to_cel
from lupa.lua51 import LuaRuntime

from kaigen.gitops.health import APPLICATION_HEALTH, CLAIM_HEALTH, Health, health_of
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.schemas import index, is_cluster_scoped

Object = dict[str, Any]
KNOWN = {
    health.kind: health
    for health in health_of(
        (version, row.kind)
        for row in KINDS.values()
        if row.health
        for version in index()["kinds"][row.kind]
        if version.startswith(f"{row.group}/")
    )
}


def table(lua: Any, value: Any) -> Any:
    """Python data as Argo CD hands an object to a script."""
    if isinstance(value, dict):
        return lua.table_from({key: table(lua, each) for key, each in value.items()})
    if isinstance(value, list):
        return lua.table_from([table(lua, each) for each in value])
    return value


def by_lua(script: str, obj: Object) -> tuple[str, str]:
    lua = LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = table(lua, obj)
    found = lua.execute(script)
    return found["status"], found["message"]


def by_cel(health: Health, obj: Object) -> str:
    """Return Flux's status for the expressions: failed takes precedence over current; the default is in progress."""
    entry = health.cel()
    environment = celpy.Environment()
    for name, word in (("failed", "Degraded"), ("current", "Healthy")):
        if name not in entry:
            continue
        program = environment.program(environment.compile(entry[name]))
        if bool(program.evaluate({"status": json_to_cel(obj.get("status", {}))})):
            return word
    return "Progressing"


def conditions(**states: str) -> list[Object]:
    return [{"type": name, "status": status, "message": f"{name} is {status}"} for name, status in states.items()]


def status(kind: str, held: list[Object]) -> Object:
    at = KNOWN[kind].conditions.at
    return {at: [{"conditions": held}]} if at else {"conditions": held}


CASES = [
    ("LeaderWorkerSet", {"Available": "True", "Progressing": "False"}, "Healthy"),
    ("LeaderWorkerSet", {"Available": "False", "Progressing": "True"}, "Progressing"),
    ("JobSet", {"StartupPolicyCompleted": "True"}, "Progressing"),
    ("JobSet", {"Completed": "True"}, "Healthy"),
    ("JobSet", {"Failed": "True"}, "Degraded"),
    ("JobSet", {"Suspended": "True"}, "Suspended"),
    ("JobSet", {"Suspended": "False", "Completed": "True"}, "Healthy"),
    ("TrainJob", {"Suspended": "False"}, "Progressing"),
    ("TrainJob", {"Suspended": "True"}, "Suspended"),
    ("TrainJob", {"Suspended": "False", "Complete": "True"}, "Healthy"),
    ("TrainJob", {"Failed": "True"}, "Degraded"),
    ("ClusterQueue", {"Active": "True"}, "Healthy"),
    ("ClusterQueue", {"Active": "False"}, "Degraded"),
    ("LocalQueue", {"Active": "True"}, "Healthy"),
    ("LocalQueue", {"Active": "Unknown"}, "Progressing"),
    ("InferencePool", {"Accepted": "True", "ResolvedRefs": "True"}, "Healthy"),
    ("InferencePool", {"Accepted": "True", "ResolvedRefs": "False"}, "Degraded"),
    ("InferencePool", {"Accepted": "Unknown"}, "Progressing"),
    ("RayCluster", {"HeadPodReady": "True", "RayClusterProvisioned": "False"}, "Progressing"),
    ("RayCluster", {"HeadPodReady": "True", "RayClusterProvisioned": "True"}, "Healthy"),
    ("RayCluster", {"RayClusterProvisioned": "True", "ReplicaFailure": "True"}, "Degraded"),
    ("RayCluster", {"RayClusterSuspended": "True"}, "Suspended"),
    ("RayService", {"Ready": "True"}, "Healthy"),
    ("RayService", {"Ready": "False"}, "Progressing"),
    ("AKSNodeClass", {"Ready": "True"}, "Healthy"),
    ("AKSNodeClass", {"Ready": "False"}, "Degraded"),
]


@pytest.mark.parametrize(("kind", "states", "expected"), CASES)
def test_both_read_the_conditions_alike(kind: str, states: dict[str, str], expected: str) -> None:
    obj = {"metadata": {"generation": 2}, "status": status(kind, conditions(**states))}
    found, message = by_lua(KNOWN[kind].lua(), obj)
    assert found == expected
    assert expected == "Progressing" or any(message == f"{name} is {value}" for name, value in states.items())
    assert by_cel(KNOWN[kind], obj) == {"Suspended": "Healthy"}.get(expected, expected)


@pytest.mark.parametrize("kind", sorted(KNOWN))
def test_an_object_that_no_controller_has_seen_is_in_progress(kind: str) -> None:
    for obj in (
        {"metadata": {"generation": 1}},
        {"metadata": {"generation": 1}, "status": {}},
        {"metadata": {"generation": 1}, "status": status(kind, [])},
    ):
        assert by_lua(KNOWN[kind].lua(), obj)[0] == "Progressing"
        assert by_cel(KNOWN[kind], obj) == "Progressing"


@pytest.mark.parametrize("kind", sorted(KNOWN))
def test_the_status_of_an_older_generation_is_ignored(kind: str) -> None:
    held = {**status(kind, conditions(**{KNOWN[kind].conditions.healthy[0]: "True"})), "observedGeneration": 1}
    assert by_lua(KNOWN[kind].lua(), {"metadata": {"generation": 1}, "status": held})[0] == "Healthy"
    assert by_lua(KNOWN[kind].lua(), {"metadata": {"generation": 2}, "status": held})[0] == "Progressing"


def test_every_kind_has_its_cases() -> None:
    assert {kind for kind, _, _ in CASES} == set(KNOWN)


@pytest.mark.parametrize("kind", sorted(KNOWN))
def test_every_kind_is_one_whose_schema_kaigen_has(kind: str) -> None:
    assert is_cluster_scoped(KNOWN[kind].api_version, kind) is not None


def test_an_application_is_as_well_as_what_it_syncs() -> None:
    assert by_lua(APPLICATION_HEALTH, {"status": {"health": {"status": "Degraded", "message": "no"}}}) == (
        "Degraded",
        "no",
    )
    assert by_lua(APPLICATION_HEALTH, {"metadata": {}}) == ("Progressing", "")


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"operation": {"sync": {}}}, "Progressing"),
        ({"phase": "Running"}, "Progressing"),
        ({"phase": "Succeeded"}, "Healthy"),
        ({"phase": "Failed"}, "Healthy"),
    ],
)
def test_an_application_is_not_healthy_before_its_sync_is_over(more: Object, status: str) -> None:
    obj: Object = {"status": {"health": {"status": "Healthy"}}}
    if "phase" in more:
        obj["status"]["operationState"] = more
    else:
        obj |= more
    assert by_lua(APPLICATION_HEALTH, obj)[0] == status


def test_a_claim_that_waits_for_its_pod_holds_nothing_up() -> None:
    assert by_lua(CLAIM_HEALTH, {"status": {"phase": "Bound"}}) == ("Healthy", "")
    assert by_lua(CLAIM_HEALTH, {"status": {"phase": "Pending"}})[0] == "Healthy"
    assert by_lua(CLAIM_HEALTH, {"metadata": {}})[0] == "Healthy"
    assert by_lua(CLAIM_HEALTH, {"status": {"phase": "Lost"}})[0] == "Degraded"


def test_another_version_of_a_kind_is_judged_likewise() -> None:
    (found,) = health_of([("kueue.x-k8s.io/v1beta1", "LocalQueue"), ("v1", "Pod")])
    assert found.api_version == "kueue.x-k8s.io/v1beta1"
    assert found.cel()["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert found.argocd_key == "resource.customizations.health.kueue.x-k8s.io_LocalQueue"
