"""The state of live objects, from statuses as controllers of Kubernetes write them."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.cluster.states import has_state, live_state

Object = dict[str, Any]


def condition(kind: str, status: str = "True", message: str = "") -> Object:
    return {"type": kind, "status": status, "message": message}


def state(api: str, status: Object, spec: Object | None = None, **metadata: Any) -> tuple[str, str]:
    version, _, kind = api.rpartition("/")
    body: Object = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec or {}, "status": status}
    found = live_state(body)
    return found.name, found.message


ROLLED = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (ROLLED, ("ready", "")),
        ({**ROLLED, "observedGeneration": 1}, ("progressing", "waiting for its controller")),
        ({**ROLLED, "updatedReplicas": 1}, ("progressing", "1 of 2 replicas are updated")),
        ({**ROLLED, "replicas": 3}, ("progressing", "old replicas are being deleted")),
        ({**ROLLED, "availableReplicas": 0}, ("progressing", "0 of 2 replicas are ready")),
        ({**ROLLED, "conditions": [condition("Progressing", "False", "too slow")]}, ("failed", "too slow")),
        ({**ROLLED, "conditions": [condition("ReplicaFailure", "True", "quota")]}, ("failed", "quota")),
    ],
)
def test_deployment_is_ready_when_its_rollout_is_complete(status: Object, expected: tuple[str, str]) -> None:
    assert state("apps/v1/Deployment", status, {"replicas": 2}, generation=2) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"currentRevision": "a", "updateRevision": "a", "currentReplicas": 1, "readyReplicas": 1}, "ready"),
        ({"currentRevision": "a", "updateRevision": "a", "currentReplicas": 1}, "progressing"),
        ({"currentRevision": "a", "updateRevision": "b", "currentReplicas": 1, "readyReplicas": 1}, "progressing"),
    ],
)
def test_statefulset_is_ready_when_its_pods_have_the_newest_revision(status: Object, expected: str) -> None:
    assert state("apps/v1/StatefulSet", status)[0] == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"conditions": [condition("Complete")]}, ("ready", "")),
        ({"conditions": [condition("Failed", message="deadline")]}, ("failed", "deadline")),
        ({"conditions": [condition("Suspended", message="queued")]}, ("suspended", "queued")),
        ({"conditions": [condition("Suspended", "False")], "active": 1, "ready": 1}, ("progressing", "running")),
        ({"active": 1}, ("progressing", "its pods are starting")),
        ({}, ("progressing", "waiting for its pods")),
    ],
)
def test_job_is_ready_when_it_is_complete(status: Object, expected: tuple[str, str]) -> None:
    assert state("batch/v1/Job", status) == expected


def test_schedule_is_ready_also_when_it_is_suspended() -> None:
    assert state("batch/v1/CronJob", {}, {"suspend": False}) == ("ready", "")
    assert state("batch/v1/CronJob", {}, {"suspend": True}) == ("ready", "no further runs start: it is suspended")


def test_claim_is_ready_when_it_is_bound() -> None:
    kind = "v1/PersistentVolumeClaim"
    assert state(kind, {"phase": "Bound"}) == ("ready", "")
    assert state(kind, {"phase": "Pending"}) == ("progressing", "waiting for a volume")
    assert state(kind, {"phase": "Lost"})[0] == "failed"


def test_other_systems_kinds_follow_the_table_of_object_kinds() -> None:
    kind = "jobset.x-k8s.io/v1alpha2/JobSet"
    assert state(kind, {"conditions": [condition("Completed")]}) == ("ready", "")
    assert state(kind, {"conditions": [condition("Failed", message="no")]}) == ("failed", "no")
    assert state(kind, {})[0] == "progressing"
    route = "gateway.networking.k8s.io/v1/HTTPRoute"
    accepted, broken = condition("Accepted"), condition("ResolvedRefs", "False", "no such Service")
    assert state(route, {"parents": [{"conditions": [accepted]}]}) == ("ready", "")
    assert state(route, {"parents": [{"conditions": [accepted, broken]}]}) == ("failed", "no such Service")


def test_object_without_a_status_is_ready_unless_it_is_being_deleted() -> None:
    assert state("v1/ConfigMap", {}) == ("ready", "")
    assert state("v1/ConfigMap", {}, deletionTimestamp="2026-11-01T00:00:00Z")[0] == "progressing"
    assert not has_state({"apiVersion": "v1", "kind": "ConfigMap"})
    assert has_state({"apiVersion": "batch/v1", "kind": "Job"})


def test_a_notebook_that_was_stopped_in_the_cluster_is_suspended_and_shall_be() -> None:
    def found(replicas: int, **annotations: str) -> tuple[str, bool]:
        status = {"readyReplicas": replicas, "currentReplicas": replicas, "replicas": replicas}
        metadata = {"annotations": annotations}
        body = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "status": status}
        state = live_state({**body, "spec": {"replicas": replicas}})
        return state.name, state.wanted

    scaled = {"kaigen.dev/scaled-by": "idle"}
    assert found(0, **scaled) == ("suspended", True)
    assert found(1, **scaled) == ("ready", False)
    assert found(0) == ("ready", False)
