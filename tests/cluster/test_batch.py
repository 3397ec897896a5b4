"""`workload: generate` on a real node: vLLM answers 10,000 lines in four shards, one pod is killed, one line is bad."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cluster.apps import JOB, compiled, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node import install
from tests.cluster.test_training import kill
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import model, start_hub
from tests.cluster.vllm_image import vllm_image

pytestmark = pytest.mark.engine

BAD, LINES, SHARDS = 6001, 10_000, 4
SHARED = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "local-path"}}


def batch(hub: Hub, lines: Hub) -> list[Object]:
    """A model, a Dataset, and the Job whose shards share its lines."""
    source = {"huggingFace": {"repo": REPO, "revision": COMMIT, "endpoint": lines.url}}
    return [
        spec(
            "Job",
            "answer",
            workload="generate",
            model="tiny",
            inputs=[{"dataset": "lines"}],
            generate={
                "task": "complete",
                "prompt": "Say {word}",
                "parameters": {"max_tokens": 2, "temperature": 0},
                "contextLength": 512,
                "checkpointLines": 200,
                "engineArgs": {"enforce-eager": True, "num-gpu-blocks-override": 64},
            },
            shards=SHARDS,
            maxFailedShards=0,
            env={"VLLM_CPU_KVCACHE_SPACE": "1"},
            resources={"cpu": "100m", "memory": "3Gi"},
            output=SHARED,
        ),
        spec("Dataset", "lines", source=source, store=SHARED),
        model("tiny", hub),
    ]


def output(node: Node, namespace: str) -> Path | None:
    """Return the folder of the Job's volume on this machine; None as long as there is none."""
    claim = node.client.find("v1/PersistentVolumeClaim", "answer-output", namespace)
    volume = claim and claim["spec"].get("volumeName")
    if not volume:
        return None
    found = node.client.get("v1/PersistentVolume", volume)["spec"]
    return Path((found.get("hostPath") or found["local"])["path"])


def has_part(node: Node, namespace: str) -> bool:
    """Whether shard 1 has stored some of its answers."""
    folder = output(node, namespace)
    return folder is not None and any(folder.glob(".generate-*/1/*.part"))


@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "downloader"))
def test_every_line_is_answered_once_and_in_order(node: Node, node_namespace: str, tmp_path: Path) -> None:
    node.import_image(vllm_image())
    texts = ["{" if number == BAD else json.dumps({"word": f"w{number}"}) for number in range(1, LINES + 1)]
    with ExitStack() as stack:
        hubs = [
            start_hub(node, base_files(context=512)),
            start_hub(node, {"lines.jsonl": "".join(f"{text}\n" for text in texts).encode()}),
        ]
        for hub in hubs:
            stack.callback(hub.__exit__)
        hubs[1].repo = f"datasets/{REPO}"
        apps = compiled(tmp_path / "specs", batch(*hubs), node_namespace, "generic")
        install(node, apps, "manifests", tmp_path / "charts")
        wait_until(partial(has_part, node, node_namespace), "a part of shard 1", 900, every=0.2)
        kill(node, node_namespace, 1, "answer")
        name = job_name(apps["answer"])
        node.client.wait(JOB, name, node_namespace, partial(is_true, condition="Complete"), "complete", timeout=1500)
    folder = output(node, node_namespace)
    assert folder is not None
    assert {path.name for path in folder.iterdir()} == {"failures.jsonl", "results.json", "results.jsonl"}
    answers = [json.loads(line) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]
    numbers = [number for number in range(1, LINES + 1) if number != BAD]
    assert [answer["line"] for answer in answers] == numbers
    assert [answer["row"]["word"] for answer in answers] == [f"w{number}" for number in numbers]
    assert all(answer["usage"]["completion_tokens"] in (1, 2) for answer in answers)
    (failure,) = [json.loads(line) for line in (folder / "failures.jsonl").read_text("utf-8").splitlines()]
    assert (failure["line"], failure["file"]) == (BAD, "lines/lines.jsonl")
    status = node.client.get(JOB, name, node_namespace)["status"]
    assert (status["succeeded"], status["failed"], status["completedIndexes"]) == (SHARDS, 1, "0-3")
