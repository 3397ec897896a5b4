"""`tune` on a real node: a Dataset trains a model on two pods, one is killed, and a chat server answers as trained."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cluster.apps import JOB, compiled, find, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import runtime_image
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node import install, run_client
from tests.cluster.test_training import kill
from tests.cluster.test_vllm import wait_until_ready
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import model, start_hub

pytestmark = pytest.mark.engine

QUESTION, ANSWER = "Where is my parcel?", "In Leeds."
CLIENT = """
import json, urllib.request
messages = [{"role": "user", "content": QUESTION}]
body = json.dumps({"model": "tuned", "messages": messages, "max_tokens": len(ANSWER), "temperature": 0}).encode()
request = urllib.request.Request("http://chat/v1/chat/completions", body, {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request, timeout=120))["choices"][0]["message"]["content"])
"""
SHARED = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "local-path"}}
STEPS = 240


def chain(hub: Hub, samples: Hub) -> list[Object]:
    """A model and samples, the Job that trains on them, what it writes as a Model, and its chat server."""
    source = {"huggingFace": {"repo": REPO, "revision": COMMIT, "endpoint": samples.url}}
    return [
        spec(
            "Topology",
            "chat",
            engine="transformers",
            model="tuned",
            servedNames=["tuned"],
            resources={"gpus": 0, "cpu": "100m", "memory": "3Gi"},
        ),
        spec("Model", "tuned", source={"job": {"name": "train", "path": "model"}}, store=SHARED),
        spec(
            "Job",
            "train",
            tune={
                "method": "full",
                "learningRate": 1e-3,
                "epochs": STEPS // 4,
                "batchSize": 2,
                "gradientAccumulation": 1,
                "evaluation": 0,
                "checkpointSteps": 10,
            },
            model="tiny",
            inputs=[{"dataset": "samples"}],
            nodes=2,
            groups="indexedJob",
            retries=3,
            env={"OMP_NUM_THREADS": "1"},
            resources={"cpu": "100m", "memory": "2Gi"},
            output=SHARED,
        ),
        spec("Dataset", "samples", source=source, store=SHARED),
        model("tiny", hub),
    ]


def output(node: Node, namespace: str) -> Path | None:
    """Return the folder of the Job's volume on this machine; None as long as there is none."""
    claim = node.client.find("v1/PersistentVolumeClaim", "train-output", namespace)
    volume = claim and claim["spec"].get("volumeName")
    if not volume:
        return None
    found = node.client.get("v1/PersistentVolume", volume)["spec"]
    return Path((found.get("hostPath") or found["local"])["path"])


def has_checkpoint(node: Node, namespace: str) -> bool:
    """Whether the run has stored a checkpoint that is complete."""
    folder = output(node, namespace)
    return folder is not None and any(folder.glob(".checkpoints/*/*/complete.json"))


@pytest.mark.ran("Job", "Service", "PersistentVolumeClaim", by=("node", "train"))
@pytest.mark.ran("Deployment", by=("node", "downloader"))
def test_a_tuned_model_gives_the_answer_that_it_was_trained_on(node: Node, node_namespace: str, tmp_path: Path) -> None:
    for name in ("train", "chat"):
        node.import_image(runtime_image(name))
    line = {"messages": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]}
    with ExitStack() as stack:
        hubs = [
            start_hub(node, base_files(context=256)),
            start_hub(node, {"train.jsonl": (json.dumps(line) + "\n").encode() * 16}),
        ]
        for hub in hubs:
            stack.callback(hub.__exit__)
        hubs[1].repo = f"datasets/{REPO}"
        apps = compiled(tmp_path / "specs", chain(*hubs), node_namespace, "generic")
        install(node, apps, "manifests", tmp_path / "charts")
        wait_until(partial(has_checkpoint, node, node_namespace), "a checkpoint", 900, every=0.2)
        kill(node, node_namespace, 1)
        complete = partial(is_true, condition="Complete")
        node.client.wait(JOB, job_name(apps["train"]), node_namespace, complete, "complete", 900)
        wait_until_ready(node, node_namespace, find(apps["chat"], "Deployment"))
    folder = output(node, node_namespace)
    assert folder is not None
    report = json.loads((folder / "report.json").read_text())
    assert (report["steps"], report["processes"]) == (STEPS, 2)
    assert 0 < report["resumedFrom"] < STEPS
    assert report["loss"]["after"] < 0.1 < report["loss"]["before"]
    program = f"QUESTION, ANSWER = {QUESTION!r}, {ANSWER!r}\n{CLIENT}"
    assert run_client(node, node_namespace, program).strip() == ANSWER
