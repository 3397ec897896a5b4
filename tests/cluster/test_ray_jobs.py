"""Real Kueue and KubeRay do with RayJobs that a team writes itself what kaigen says of them. Ray does not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kaigen.catalog.catalog import Catalog
from kaigen.check.ray_rules import ray_job_findings
from kaigen.kubernetes.admission import Queues, Verdict
from kaigen.kubernetes.requests import requests_of
from kaigen.kubernetes.workloads import workloads_of
from kaigen.pipeline.result import Compiled
from tests.cluster.apps import POD, add_gpu_node, compiled
from tests.cluster.client import ApiError, Object
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.test_queue_kind import API, apply, is_admitted, spec, wait_active, why_pending

pytestmark = pytest.mark.engine

RAY_JOB = "ray.io/v1/RayJob"


@pytest.fixture
def queues(plane: Plane, groups: GroupControllers, namespace: str) -> Iterator[str]:
    """A namespace on a plane with Kueue; what belongs to the cluster is deleted after the test."""
    groups.start_leader_worker_set()
    groups.start_job_set()
    groups.start_kueue()
    yield namespace
    for each in plane.client.objects(RAY_JOB, namespace):
        plane.client.delete(RAY_JOB, each["metadata"]["name"], namespace)
    for kind in ("ClusterQueue", "ResourceFlavor"):
        for body in plane.client.objects(f"{API}/{kind}", ""):
            if body["metadata"]["name"].startswith(namespace):
                plane.client.delete(f"{API}/{kind}", body["metadata"]["name"])


def template() -> Object:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return {"spec": {"containers": [{"name": "ray", "image": "ray:1", "resources": resources}]}}


def ray_job(name: str, queue: str, workers: int, cluster: Object | None = None, **fields: object) -> Object:
    group = {"groupName": "workers", "replicas": workers, "minReplicas": 0, "maxReplicas": 9, "numOfHosts": 1}
    head = {"rayStartParams": {}, "template": template()}
    found = {"headGroupSpec": head, "workerGroupSpecs": [{**group, "rayStartParams": {}, "template": template()}]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "namespace": queue, "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {
            "entrypoint": "python train.py",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": {**found, **(cluster or {})},
            **fields,
        },
    }


def verdict(app: Compiled, namespace: str, *jobs: Object) -> dict[str, Verdict]:
    """Return what kaigen says of RayJobs in the queue of an app, by name."""
    placed = [(namespace, each.body) for each in app.objects] + [(namespace, job) for job in jobs]
    return {each.workload.name: each for each in Queues(placed).verdicts(workloads_of(placed, Catalog()))}


def waits_for_cpus(plane: Plane, namespace: str, name: str) -> bool:
    """Return whether Kueue has said that a run waits for quota of CPUs."""
    return "for cpu" in why_pending(plane, namespace, name)


def test_kueue_admits_a_ray_job_with_its_head_workers_and_submitter_as_kaigen_said(
    plane: Plane, queues: str, tmp_path: Path
) -> None:
    # A head, two workers and half a CPU of the submitter.
    apps = compiled(tmp_path, [spec("Queue", queues, quota=[{"cpu": "3500m", "memory": "64Gi"}])], queues, "generic")
    first, second, large = (ray_job(name, queues, workers) for name, workers in (("a", 2), ("b", 1), ("c", 3)))
    said = verdict(apps[queues], queues, first, second, large)
    assert [(bool(said[name].never), said[name].waits) for name in "abc"] == [
        (False, False),
        (False, True),
        (True, False),
    ]
    apply(plane, apps[queues])
    wait_active(plane, queues, queues)
    plane.client.apply(first)
    wait_until(lambda: is_admitted(plane, queues, "a"), "the first is admitted", every=0.2)
    for job in (second, large):
        plane.client.apply(job)
        wait_until(partial(waits_for_cpus, plane, queues, job["metadata"]["name"]), "it waits", every=0.2)
    plane.client.delete(RAY_JOB, "a", queues)
    wait_until(lambda: is_admitted(plane, queues, "b"), "the second is admitted", 60, every=0.2)
    assert not is_admitted(plane, queues, "c")


def pods_of(plane: Plane, namespace: str) -> list[Object]:
    """Return the pods of a namespace, without those that are being deleted."""
    return [pod for pod in plane.client.objects(POD, namespace) if "deletionTimestamp" not in pod["metadata"]]


def test_the_pods_that_kube_ray_makes_request_what_plan_predicted(
    plane: Plane, queues: str, groups: GroupControllers, tmp_path: Path
) -> None:
    groups.start_kube_ray()
    add_gpu_node(plane)
    apps = compiled(tmp_path, [spec("Queue", queues, quota=[{"cpu": "3500m", "memory": "64Gi"}])], queues, "generic")
    first, second = (ray_job(name, queues, 2) for name in "ab")
    said = verdict(apps[queues], queues, first, second)
    predicted = said["a"].workload
    assert [(bool(said[name].never), said[name].waits) for name in "ab"] == [(False, False), (False, True)]
    apply(plane, apps[queues])
    wait_active(plane, queues, queues)
    # KubeRay's pod that submits has no security context.
    plane.set_pod_security(queues, "baseline")
    plane.client.apply(first)
    # The pod that submits comes when the cluster is ready.
    count = sum(each.count for each in predicted.pod_sets)
    wait_until(lambda: len(pods_of(plane, queues)) == count, f"{count} pods", 120, every=0.2)
    total: Counter[str] = Counter()
    for pod in pods_of(plane, queues):
        total.update(requests_of({**pod, "apiVersion": "v1", "kind": "Pod"}, Catalog()))
    assert total == predicted.requests
    plane.client.apply(second)
    wait_until(partial(waits_for_cpus, plane, queues, "b"), "it waits", every=0.2)
    assert len(pods_of(plane, queues)) == count


@pytest.mark.parametrize(
    ("cluster", "fields"),
    [
        ({}, {"shutdownAfterJobFinishes": False}),
        ({}, {"clusterSelector": {"ray.io/cluster": "a"}}),
        ({"enableInTreeAutoscaling": True}, {}),
        (
            {"workerGroupSpecs": [{"groupName": "head", "replicas": 1, "rayStartParams": {}, "template": template()}]},
            {},
        ),
    ],
    ids=["cluster that stays", "two clusters", "autoscaler", "group of workers"],
)
def test_kueue_refuses_the_ray_jobs_that_kaigen_refuses(
    plane: Plane, queues: str, cluster: Object, fields: Object
) -> None:
    assert not list(ray_job_findings(ray_job("a", queues, 1)))
    refused = ray_job("a", queues, 1, cluster, **fields)
    assert len(list(ray_job_findings(refused))) == 1
    with pytest.raises(ApiError):
        plane.client.create(refused)
    del refused["metadata"]["labels"]
    assert not list(ray_job_findings(refused))
