"""A training that Kueue preempts, or whose pod is evicted, goes on from its last checkpoint, and that is no failure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runtimes.downloader.tests.hub import COMMIT, REPO
from tests.cluster.apps import JOB, POD, compiled, spec
from tests.cluster.client import Object, is_true
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.images import BASE, runtime_image
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node import install
from tests.cluster.test_training import ENDS
from tests.cluster.test_tune import SHARED, has_checkpoint, output
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import model, start_hub

pytestmark = pytest.mark.engine

API = "kueue.x-k8s.io/v1beta2"
WORKLOAD = f"{API}/Workload"
STEPS, SAMPLES, BATCH = 64, 16, 2
LINE = {"messages": [{"role": "user", "content": "Where is my parcel?"}, {"role": "assistant", "content": "In Leeds."}]}


def tune(queue: str, nodes: int) -> Object:
    """Return a Job that trains for so many steps, without retries, in a queue that has room for it alone."""
    several = {"nodes": nodes, "groups": "jobSet"} if nodes > 1 else {}
    return spec(
        "Job",
        "train",
        tune={
            "method": "full",
            "epochs": STEPS * BATCH * nodes // SAMPLES,
            "batchSize": BATCH,
            "gradientAccumulation": 1,
            "evaluation": 0,
            "checkpointSteps": 5,
        },
        model="tiny",
        inputs=[{"dataset": "samples"}],
        retries=0,
        env={"OMP_NUM_THREADS": "1"},
        resources={"cpu": "100m", "memory": "2Gi"},
        output=SHARED,
        placement={"queue": queue, "priority": f"{queue}-low"},
        **several,
    )


def urgent(queue: str) -> Object:
    """Return a Job that the queue does not hold next to the other one."""
    return spec(
        "Job",
        "urgent",
        image=BASE,
        command=["true"],
        resources={"cpu": "100m", "memory": "128Mi"},
        placement={"queue": queue, "priority": f"{queue}-high"},
    )


@pytest.fixture
def hubs(node: Node) -> Iterator[tuple[Object, Object]]:
    """The specs of a model and of samples, on Hubs that end after the test."""
    lines = (json.dumps(LINE) + "\n").encode() * SAMPLES
    tiny, samples = start_hub(node, base_files(context=256)), start_hub(node, {"train.jsonl": lines})
    samples.repo = f"datasets/{REPO}"
    source = {"huggingFace": {"repo": REPO, "revision": COMMIT, "endpoint": samples.url}}
    yield model("tiny", tiny), spec("Dataset", "samples", source=source, store=SHARED)
    for hub in (tiny, samples):
        hub.__exit__()


class Training:
    """A training in a queue on a real node."""

    def __init__(self, node: Node, namespace: str, nodes: int) -> None:
        self.node, self.namespace = node, namespace
        self.kind, self.end = ENDS["jobSet" if nodes > 1 else "indexedJob"]

    def body(self) -> Any:
        """Return the object of the run."""
        selector = "app.kubernetes.io/name=train"
        found = self.node.client.objects(self.kind, self.namespace, selector)
        (body,) = [each for each in found if each["metadata"]["name"].startswith("train-")]
        return body

    def wait_for_checkpoint(self) -> None:
        """Wait until a checkpoint is complete."""
        wait_until(partial(has_checkpoint, self.node, self.namespace), "a checkpoint", 400, every=0.2)

    def wait_for_end(self) -> None:
        """Wait until the run succeeded."""
        name = self.body()["metadata"]["name"]

        def is_over(body: Object) -> bool:
            return any(is_true(body, condition) for condition in (self.end, "Failed"))

        body = self.node.client.wait(self.kind, name, self.namespace, is_over, "over", 400)
        assert is_true(body, self.end), body["status"]

    def evictions(self) -> Mapping[str, int]:
        """Return how often Kueue evicted the run, by reason."""
        name = self.body()["metadata"]["name"]
        (workload,) = [
            each
            for each in self.node.client.objects(WORKLOAD, self.namespace)
            if name in {owner["name"] for owner in each["metadata"]["ownerReferences"]}
        ]
        evictions = workload["status"].get("schedulingStats", {}).get("evictions", ())
        return {each["reason"]: each["count"] for each in evictions}

    def events(self) -> list[dict[str, Any]]:
        """Return what the first process of the last attempt printed."""
        pods = self.node.client.objects(POD, self.namespace, "app.kubernetes.io/name=train")
        ended = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Succeeded"]
        lines = [
            line
            for name in ended
            for line in self.node.run("kubectl", "logs", "--namespace", self.namespace, name).stdout.splitlines()
        ]
        return [json.loads(line) for line in lines if line.startswith('{"event"')]

    def check(self, nodes: int) -> None:
        """Check that the last attempt went on from a checkpoint to the end, and that no attempt failed."""
        folder = output(self.node, self.namespace)
        assert folder is not None
        report = json.loads((folder / "report.json").read_text())
        assert (report["steps"], report["processes"]) == (STEPS, nodes)
        assert 0 < report["resumedFrom"] < STEPS
        assert (folder / "model" / "model.safetensors").exists()
        start, *others = self.events()
        assert (start["event"], start["resumedFrom"]) == ("start", report["resumedFrom"])
        steps = [each["step"] for each in others if each["event"] == "step"]
        assert steps == list(range(report["resumedFrom"] + 1, STEPS + 1))
        status = self.body()["status"]
        assert not status.get("failed")
        assert not status.get("restartsCountTowardsMax")


@pytest.fixture(scope="module")
def trainer(node: Node) -> None:
    """The image of the training on the node, where its import takes a minute."""
    node.import_image(runtime_image("train"))


@pytest.fixture
def queue(node: Node, node_namespace: str, node_groups: GroupControllers, trainer: None) -> Iterator[str]:
    """A namespace on a node with Kueue."""
    node_groups.start_leader_worker_set()
    node_groups.start_job_set()
    node_groups.start_kueue()
    yield node_namespace
    for kind in ("ClusterQueue", "ResourceFlavor", "WorkloadPriorityClass"):
        for body in node.client.objects(f"{API}/{kind}"):
            if body["metadata"]["name"].startswith(node_namespace):
                node.client.delete(f"{API}/{kind}", body["metadata"]["name"])


def start(
    node: Node, folder: Path, queue: str, hubs: tuple[Object, Object], nodes: int
) -> tuple[Training, list[Object]]:
    """Install a training in a queue.

    Returns:
        The training, and the objects of the urgent Job, which are not installed.
    """
    quota = spec(
        "Queue",
        queue,
        quota=[{"cpu": f"{100 * nodes + 50}m", "memory": f"{2 * nodes}Gi"}],
        priorities={"low": 10, "high": 1000},
        preemption={"withinClusterQueue": "LowerPriority"},
    )
    apps = compiled(folder / "specs", [quota, tune(queue, nodes), urgent(queue), *hubs], queue, "generic")
    later = apps.pop("urgent")
    install(node, apps, "manifests", folder / "charts")
    return Training(node, queue, nodes), [rendered.body for rendered in later.objects]


@pytest.mark.ran("WorkloadPriorityClass", by="kueue")
@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(1, marks=pytest.mark.ran("Job", by=("node", "train", "kueue"))),
        pytest.param(2, marks=pytest.mark.ran("JobSet", by=("node", "train", "jobset", "kueue"))),
    ],
)
def test_a_preempted_training_goes_on_from_its_checkpoint(
    node: Node, queue: str, hubs: tuple[Object, Object], tmp_path: Path, nodes: int
) -> None:
    training, later = start(node, tmp_path, queue, hubs, nodes)
    training.wait_for_checkpoint()
    for body in later:
        node.client.apply(body)
    wait_until(lambda: training.body()["spec"]["suspend"], "the training is suspended", 60, every=0.2)
    (name,) = [body["metadata"]["name"] for body in later if body["kind"] == "Job"]
    node.client.wait(JOB, name, queue, partial(is_true, condition="Complete"), "complete", 120)
    training.wait_for_end()
    training.check(nodes)
    assert training.evictions() == {"Preempted": 1}


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_training_whose_pod_is_evicted_goes_on_from_its_checkpoint(
    node: Node, queue: str, hubs: tuple[Object, Object], tmp_path: Path, nodes: int
) -> None:
    training, _ = start(node, tmp_path, queue, hubs, nodes)
    training.wait_for_checkpoint()
    pod = node.client.objects(POD, queue, "app.kubernetes.io/name=train")[-1]["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    node.client.request("POST", node.client.path(POD, pod, queue, "eviction"), eviction)
    node.client.wait_gone(POD, pod, queue)
    training.wait_for_end()
    training.check(nodes)
    # The queue keeps the quota for it.
    assert training.evictions() == {}
