"""Training on several nodes with torchrun on a real node: one world, and again after pods were killed."""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.apps import JOB, POD, compiled, spec
from tests.cluster.client import Object, is_true
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.images import default_image
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.vllm_image import vllm_image

pytestmark = pytest.mark.engine

ENDS = {
    "jobSet": ("jobset.x-k8s.io/v1alpha2/JobSet", "Completed"),
    "trainJob": ("trainer.kubeflow.org/v1alpha1/TrainJob", "Complete"),
    "indexedJob": (JOB, "Complete"),
}
"""The object of a run, and the condition that it has when it succeeded."""
STEPS = 24
TRAIN = """
import json, os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
target = torch.arange(1.0, 9.0)
weights, step = torch.zeros(8), 0
if os.path.exists("/output/checkpoint.pt"):
    saved = torch.load("/output/checkpoint.pt")
    weights, step = saved["weights"], saved["step"]
while step < STEPS:
    inputs = torch.randn(64, 8)
    errors = inputs @ (weights - target)
    both = torch.cat([inputs.T @ errors / 32, (errors ** 2).mean().view(1)])
    dist.all_reduce(both)
    weights, step = weights - 0.1 * both[:8] / world, step + 1
    if rank == 0:
        torch.save({"weights": weights, "step": step}, "/output/draft.pt")
        os.replace("/output/draft.pt", "/output/checkpoint.pt")
        entry = {"step": step, "loss": float(both[8]) / world, "world": world}
        print(json.dumps(entry), file=open("/output/log.jsonl", "a"))
    time.sleep(0.5)
dist.destroy_process_group()
"""


def training(groups: str) -> Object:
    """A Job of two pods; its program is in a variable, so that no image has to be built for it."""
    script = 'printf "%s" "$TRAIN" > /tmp/train.py && exec python3 -m torch.distributed.run /tmp/train.py'
    return spec(
        "Job",
        "train",
        image=default_image("vllmCpu"),
        command=["sh", "-c", script],
        env={"TRAIN": TRAIN.replace("STEPS", str(STEPS)), "OMP_NUM_THREADS": "1"},
        nodes=2,
        groups=groups,
        retries=3,
        resources={"cpu": "100m", "memory": "1Gi"},
        output={"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "local-path"}},
    )


def log(node: Node, namespace: str) -> list[dict[str, Any]]:
    """Return what the first rank wrote to the volume after each step."""
    claim = node.client.find("v1/PersistentVolumeClaim", "train-output", namespace)
    volume = claim and claim["spec"].get("volumeName")
    if not volume:
        return []
    source = node.client.get("v1/PersistentVolume", volume)["spec"]
    folder = Path((source.get("hostPath") or source["local"])["path"])
    text = (folder / "log.jsonl").read_text() if (folder / "log.jsonl").exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def kill(node: Node, namespace: str, index: int, name: str = "train") -> None:
    """Kill the processes of a rank's or shard's running pod, as a node that crashes does."""
    selector = f"app.kubernetes.io/name={name},batch.kubernetes.io/job-completion-index={index}"
    (pod,) = [
        pod
        for pod in node.client.objects(POD, namespace, selector)
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]
    (status,) = pod["status"]["containerStatuses"]
    container = status["containerID"].removeprefix("containerd://")
    node.ctr("tasks", "kill", "--signal", "SIGKILL", container)


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param("jobSet", marks=pytest.mark.ran("JobSet", by=("node", "jobset"))),
        pytest.param(
            "trainJob", marks=pytest.mark.ran("TrainJob", "TrainingRuntime", by=("node", "trainer", "jobset"))
        ),
        pytest.param("indexedJob", marks=pytest.mark.ran("Job", "Service", by="node")),
    ],
)
def test_training_goes_on_as_one_world_after_each_loss(
    node: Node, node_namespace: str, node_groups: GroupControllers, tmp_path: Path, groups: str
) -> None:
    node.import_image(vllm_image())
    node_groups.start_trainer()
    (app,) = compiled(tmp_path, [training(groups)], node_namespace, "generic").values()
    for rendered in app.objects:
        node.client.apply(rendered.body)
    for lost, step in ((1, 5), (0, 12)):
        wait_until(partial(reached, node, node_namespace, step), f"step {step}", 300, every=0.5)
        kill(node, node_namespace, lost)
    kind, condition = ENDS[groups]
    (run,) = node.client.objects(kind, node_namespace)
    name = run["metadata"]["name"]
    node.client.wait(kind, name, node_namespace, partial(is_true, condition=condition), "complete", 300)

    entries = log(node, node_namespace)
    assert {entry["world"] for entry in entries} == {2}
    # No step is lost but the one in progress.
    steps = [entry["step"] for entry in entries]
    assert all(after - before in {0, 1} for before, after in pairwise(steps))
    assert (steps[0], steps[-1]) == (1, STEPS)
    losses = [entry["loss"] for entry in entries]
    assert losses[0] > 100
    assert losses[-1] < losses[0] / 10


def reached(node: Node, namespace: str, step: int) -> bool:
    """Whether training got to a step."""
    entries = log(node, namespace)
    return bool(entries) and entries[-1]["step"] >= step
