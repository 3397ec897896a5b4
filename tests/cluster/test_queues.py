"""What Kueue does with the objects that kaigen emits for a queue."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kaigen.kubernetes.manifest import type_of
from kaigen.kubernetes.queues import QUEUE_LABEL, has_fixed_queue, rejected_changes
from tests.cluster.apps import POD, add_gpu_node, compiled, find
from tests.cluster.client import ApiError, Object
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.tools.parts import JUDGE_PARTS

pytestmark = pytest.mark.engine

API = "kueue.x-k8s.io/v1beta2"
WORKLOAD = f"{API}/Workload"
CLUSTER_QUEUE = f"{API}/ClusterQueue"
CPUS = 4
(_PART,) = (part for part in JUDGE_PARTS if part.name == "kueue")
KUEUE = tuple(int(number) for number in _PART.version[1:].split("."))
"""The version that tests/cluster/tools/kueue builds."""


def spec(kind: str, name: str, *, annotations: Object | None = None, **fields: Any) -> Object:
    return {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **({"annotations": annotations} if annotations else {})},
        "spec": {**fields, "placement": {"queue": "research"}},
    }


def set_quota(plane: Plane, name: str, cpus: int) -> None:
    """Give a ClusterQueue of this name so many CPUs."""
    resources = [{"name": "cpu", "nominalQuota": str(cpus)}, {"name": "memory", "nominalQuota": "1Ti"}]
    flavors = [{"name": "default", "resources": resources}]
    groups = [{"coveredResources": ["cpu", "memory"], "flavors": flavors}]
    plane.client.apply(
        {
            "apiVersion": API,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": groups},
        }
    )


@pytest.fixture
def queue(plane: Plane, groups: GroupControllers, namespace: str) -> Iterator[str]:
    """A namespace with the queue `research`, which has four CPUs."""
    groups.start_leader_worker_set()
    groups.start_job_set()
    groups.start_kueue()
    add_gpu_node(plane)
    plane.client.apply({"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "default"}})
    set_quota(plane, namespace, CPUS)
    plane.client.apply(
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": "research", "namespace": namespace},
            "spec": {"clusterQueue": namespace},
        }
    )
    yield namespace
    # It goes when the workloads of the namespace are gone.
    plane.client.delete(CLUSTER_QUEUE, namespace)


def apply(plane: Plane, folder: Path, namespace: str, document: Object, kind: str) -> Object:
    """Apply the app of a spec; return its object of a kind as rendered."""
    (app,) = compiled(folder, [document], namespace, "generic").values()
    for rendered in app.objects:
        plane.client.apply(rendered.body)
    return find(app, kind)


def running(plane: Plane, namespace: str, app: str) -> int:
    pods = plane.client.objects(POD, namespace, f"app.kubernetes.io/name={app}")
    # Simulated pods of Jobs end at once.
    return sum(pod["status"].get("phase") in {"Running", "Succeeded"} for pod in pods)


def wait_running(plane: Plane, namespace: str, app: str, count: int) -> None:
    wait_until(lambda: running(plane, namespace, app) == count, f"{count} pods of {app} run", every=0.5)


@pytest.mark.parametrize("groups_of", ["jobSet", "indexedJob"])
def test_several_nodes_start_together_once_there_is_quota(
    plane: Plane, queue: str, tmp_path: Path, groups_of: str
) -> None:
    document = spec(
        "Job", "train", image="train:1", nodes=CPUS + 2, groups=groups_of, resources={"cpu": "1", "memory": "1Gi"}
    )
    apply(plane, tmp_path, queue, document, "JobSet" if groups_of == "jobSet" else "Job")
    wait_until(lambda: len(plane.client.objects(WORKLOAD, queue)) == 1, "Kueue has a workload", every=0.5)
    (workload,) = plane.client.objects(WORKLOAD, queue)
    assert [each["count"] for each in workload["spec"]["podSets"]] == [CPUS + 2]
    assert plane.client.objects(POD, queue, "app.kubernetes.io/name=train") == []
    set_quota(plane, queue, CPUS + 2)
    wait_running(plane, queue, "train", CPUS + 2)


def server(name: str, **fields: Any) -> Object:
    return spec(
        "Topology",
        name,
        engine="container",
        image="server:1",
        model={"folder": "/weights"},
        port=8000,
        resources={"cpu": "1", "memory": "1Gi"},
        **fields,
    )


def engine_groups(name: str) -> Object:
    resources = {"gpus": 0, "cpu": "1", "memory": "1Gi"}
    return spec(
        "Topology", name, model={"folder": "/weights"}, shape={"nodes": 2, "pipelineParallel": 2}, resources=resources
    )


def changed(body: Object, memory: str) -> Object:
    """Return a workload whose containers request another amount of memory."""
    result = copy.deepcopy(body)
    inner = result["spec"].get("leaderWorkerTemplate")
    templates = [inner["leaderTemplate"], inner["workerTemplate"]] if inner else [result["spec"]["template"]]
    for template in templates:
        resources = template["spec"]["containers"][0]["resources"]
        resources["requests"]["memory"] = resources["limits"]["memory"] = memory
    return result


def with_queue(body: Object, name: str) -> Object:
    result = copy.deepcopy(body)
    result["metadata"]["labels"][QUEUE_LABEL] = name
    return result


def rejection(plane: Plane, body: Object) -> str:
    """Apply an object; return why it was rejected, or nothing."""
    try:
        plane.client.apply(body)
    except ApiError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("document", "kind", "pods"),
    [
        (server("sets", storage={"size": "1Gi"}), "StatefulSet", 1),
        (engine_groups("groups"), "LeaderWorkerSet", 2),
        (server("plain"), "Deployment", 1),
    ],
    ids=["StatefulSet", "LeaderWorkerSet", "Deployment"],
)
def test_kueue_rejects_what_diff_says(
    plane: Plane, queue: str, tmp_path: Path, document: Object, kind: str, pods: int
) -> None:
    name = document["metadata"]["name"]
    body = apply(plane, tmp_path, queue, document, kind)
    wait_running(plane, queue, name, pods)
    wait_until(partial(is_ready, plane, body), f"{name} is ready", every=0.5)
    more_memory, two = changed(body, "2Gi"), copy.deepcopy(body)
    two["spec"]["replicas"] = 2
    changes = [more_memory, two]
    if kind == "LeaderWorkerSet":
        changes.append(copy.deepcopy(body))
        changes[-1]["spec"]["leaderWorkerTemplate"]["size"] = 3
    for change in changes:
        said, happened = rejected_changes(body, change, KUEUE), rejection(plane, change)
        assert bool(said) == ("immutable" in happened), (said, happened)
    assert "immutable" in rejection(plane, with_queue(body, "other"))
    assert rejection(plane, body) == ""
    # It changes until a replica is ready.
    assert not has_fixed_queue(type_of(body), KUEUE)


def is_ready(plane: Plane, body: Object) -> bool:
    kind = f"{body['apiVersion']}/{body['kind']}"
    metadata = body["metadata"]
    status: Any = plane.client.get(kind, metadata["name"], metadata["namespace"]).get("status", {})
    return bool(status.get("readyReplicas") == 1)


def test_groups_are_admitted_as_one_only_by_a_leader_worker_set(plane: Plane, queue: str, tmp_path: Path) -> None:
    groups, sets = engine_groups("whole"), engine_groups("parts")
    sets["spec"]["shape"]["groups"] = "statefulSet"
    apply(plane, tmp_path, queue, groups, "LeaderWorkerSet")
    wait_until(lambda: len(plane.client.objects(WORKLOAD, queue)) == 1, "one workload", every=0.5)
    (app,) = compiled(tmp_path, [sets], queue, "generic").values()
    for rendered in app.objects:
        plane.client.apply(rendered.body)
    wait_until(lambda: len(plane.client.objects(WORKLOAD, queue)) == 3, "two more workloads", every=0.5)


def test_kueue_reads_the_request_for_a_topology(plane: Plane, queue: str, tmp_path: Path) -> None:
    notes = {"kueue.x-k8s.io/podset-preferred-topology": "cloud.com/rack"}
    document = spec("Job", "near", annotations=notes, image="train:1", nodes=2, resources={"cpu": "1", "memory": "1Gi"})
    apply(plane, tmp_path, queue, document, "JobSet")
    wait_until(lambda: len(plane.client.objects(WORKLOAD, queue)) == 1, "a workload", every=0.5)
    (workload,) = plane.client.objects(WORKLOAD, queue)
    request = workload["spec"]["podSets"][0]["topologyRequest"]
    assert request["preferred"] == "cloud.com/rack"
