"""PodDisruptionBudgets that allow no eviction."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.check.budgets import budget_findings

Object = dict[str, Any]
LABELS = {"app": "web"}
POD = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "x"}]}}


def object_of(api_version: str, kind: str, **spec: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "ml"}, "spec": spec}


def deployment(**spec: Any) -> Object:
    return object_of("apps/v1", "Deployment", template=POD, **spec)


def group(**spec: Any) -> Object:
    template = {"size": 2, "workerTemplate": POD}
    return object_of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", leaderWorkerTemplate=template, **spec)


def hpa(**spec: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return object_of("autoscaling/v2", "HorizontalPodAutoscaler", scaleTargetRef=target, **spec)


def keda(**spec: Any) -> Object:
    return object_of("keda.sh/v1alpha1", "ScaledObject", scaleTargetRef={"name": "web"}, **spec)


JOB = object_of("batch/v1", "Job", template=POD)


@pytest.mark.parametrize(
    ("budget", "others", "pods"),
    [
        ({"maxUnavailable": 0}, [deployment(replicas=3)], ""),
        ({"maxUnavailable": "0%"}, [JOB], ""),
        ({"maxUnavailable": 1}, [deployment(replicas=1)], None),
        ({"maxUnavailable": "10%"}, [deployment(replicas=1)], None),
        ({"minAvailable": 3}, [deployment(replicas=3)], "3 pods"),
        ({"minAvailable": 2}, [deployment(replicas=3)], None),
        ({"minAvailable": 1}, [deployment()], "1 pod"),
        ({"minAvailable": "100%"}, [deployment(replicas=3)], "3 pods"),
        ({"minAvailable": "67%"}, [deployment(replicas=3)], "3 pods"),
        ({"minAvailable": "66%"}, [deployment(replicas=3)], None),
        ({"minAvailable": "50%"}, [deployment(replicas=1)], "1 pod"),
        ({"minAvailable": 1}, [deployment(replicas=4), hpa(minReplicas=1, maxReplicas=4)], "1 pod"),
        ({"minAvailable": 1}, [deployment(replicas=4), hpa(maxReplicas=4)], "1 pod"),
        ({"minAvailable": 1}, [deployment(replicas=1), hpa(minReplicas=2, maxReplicas=4)], None),
        ({"minAvailable": 1}, [deployment(), keda(minReplicaCount=0)], "1 pod"),
        ({"minAvailable": 3}, [deployment(), keda(minReplicaCount=2)], "2 pods"),
        ({"minAvailable": 2}, [group(replicas=2)], None),
        ({"minAvailable": 4}, [group(replicas=2)], "4 pods"),
        ({"minAvailable": 1}, [JOB], None),
        ({"minAvailable": 1}, [], None),
        ({"minAvailable": "many"}, [deployment()], None),
    ],
)
def test_a_budget_that_allows_no_eviction_is_found(budget: Object, others: list[Object], pods: str | None) -> None:
    objects = [*others, object_of("policy/v1", "PodDisruptionBudget", selector={"matchLabels": LABELS}, **budget)]
    found = list(budget_findings(objects))
    assert [number for number, _ in found] == ([] if pods is None else [len(others)])
    for _, problem in found:
        ((field, value),) = budget.items()
        assert problem.code == "KG0574"
        assert problem.path == ("spec", field)
        running = f" of {pods}" if pods else ""
        assert problem.message == f"`{field}: {value}` allows no eviction{running}, so draining a node never ends"
