"""Changes that Kueue rejects."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kaigen.kubernetes.queues import QUEUE_LABEL, has_fixed_queue, rejected_changes


def queued(kind: str, *, queue: str = "a", replicas: int = 1, containers: Any = (), **pod: Any) -> dict[str, Any]:
    template = {"spec": {"containers": list(containers) or [{"name": "c"}], **pod}}
    spec: dict[str, Any] = {"replicas": replicas, "template": template}
    version = "apps/v1"
    if kind == "LeaderWorkerSet":
        version = "leaderworkerset.x-k8s.io/v1"
        templates = {"leaderTemplate": copy.deepcopy(template), "workerTemplate": template}
        spec = {"replicas": replicas, "leaderWorkerTemplate": templates}
    labels = {QUEUE_LABEL: queue} if queue else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "n", "labels": labels}, "spec": spec}


def container(**resources: Any) -> dict[str, Any]:
    return {"name": "c", "resources": resources}


@pytest.mark.parametrize("kind", ["StatefulSet", "LeaderWorkerSet"])
@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ({}, {}, []),
        ({}, {"nodeSelector": {"a": "b"}}, ["nodeSelector"]),
        ({"tolerations": []}, {"tolerations": [{"operator": "Exists"}]}, ["tolerations"]),
        ({}, {"terminationGracePeriodSeconds": 5}, []),
        ({}, {"containers": [{"name": "c", "image": "b"}]}, []),
        ({}, {"containers": [{"name": "c"}, {"name": "d"}]}, ["containers"]),
        ({}, {"initContainers": [{"name": "i"}]}, ["initContainers"]),
        ({}, {"containers": [{"name": "c", "ports": [{"containerPort": 1}]}]}, ["ports"]),
        (
            {"containers": [container(requests={"memory": "1Gi"})]},
            {"containers": [container(requests={"memory": "2Gi"})]},
            ["resource requests"],
        ),
        (
            {"containers": [container(requests={"cpu": "1"}, limits={"nvidia.com/gpu": 1})]},
            {"containers": [container(requests={"cpu": "1"}, limits={"nvidia.com/gpu": 2})]},
            ["resource requests"],
        ),
        (
            {"containers": [container(requests={"memory": "1Gi"}, limits={"memory": "1Gi"})]},
            {"containers": [container(requests={"memory": "1Gi"}, limits={"memory": "2Gi"})]},
            [],
        ),
    ],
    ids=str,
)
def test_what_quota_depends_on_cannot_change(
    kind: str, old: dict[str, Any], new: dict[str, Any], names: list[str]
) -> None:
    assert rejected_changes(queued(kind, **old), queued(kind, **new)) == names


@pytest.mark.parametrize(
    ("kind", "was", "now", "names"),
    [
        ("StatefulSet", 1, 2, ["replicas"]),
        ("StatefulSet", 0, 2, []),
        ("StatefulSet", 2, 0, []),
        ("LeaderWorkerSet", 1, 2, []),
        ("Deployment", 1, 2, []),
    ],
)
def test_only_a_stateful_set_cannot_scale(kind: str, was: int, now: int, names: list[str]) -> None:
    assert rejected_changes(queued(kind, replicas=was), queued(kind, replicas=now)) == names


def test_everything_may_change_without_a_queue() -> None:
    old, new = queued("StatefulSet", queue=""), queued("StatefulSet", queue="", replicas=3)
    assert rejected_changes(old, new) == []


def test_pods_of_a_deployment_are_admitted_one_by_one() -> None:
    old = queued("Deployment", containers=[container(requests={"memory": "1Gi"})])
    new = queued("Deployment", containers=[container(requests={"memory": "2Gi"})])
    assert rejected_changes(old, new) == []


@pytest.mark.parametrize(
    ("version", "names", "fixed"),
    [((0, 16, 2), [], True), ((0, 18), [], False), ((0, 19, 2), ["the size of a group"], False)],
)
def test_groups_keep_their_size_and_change_their_queue_by_version(
    version: tuple[int, ...], names: list[str], fixed: bool
) -> None:
    # pkg/controller/jobs/leaderworkerset/leaderworkerset_webhook.go of each version: ValidateUpdate
    old, new = queued("LeaderWorkerSet"), queued("LeaderWorkerSet")
    new["spec"]["leaderWorkerTemplate"]["size"] = 3
    assert rejected_changes(old, new, version) == names
    assert has_fixed_queue("LeaderWorkerSet.leaderworkerset.x-k8s.io", version) is fixed


@pytest.mark.parametrize(("version", "names"), [((0, 18), []), ((0, 19), ["resource requests"])])
def test_requests_of_whole_pods_count_since_0_19(version: tuple[int, ...], names: list[str]) -> None:
    old, new = queued("StatefulSet"), queued("StatefulSet", resources={"requests": {"cpu": "2"}})
    assert rejected_changes(old, new, version) == names
