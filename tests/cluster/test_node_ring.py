"""A ring of distributed-llama on a real node: a model is downloaded and converted, and four pods answer for it.

The image is a peer of the program, with its command line and its faults on the network, and without a model.
"""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runtimes.convert.tests.tiny_models import LLAMA, random_tensors, save_model
from tests.cluster.apps import POD, compiled, spec
from tests.cluster.client import Object
from tests.cluster.images import BASE, build_from, runtime_image
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node import run_client
from tests.cluster.vllm_app import model, start_hub

IMAGE = "kaigen.test/distributed-llama:v0.16.4"
PEER = Path(__file__).parents[1] / "ring" / "peer.py"
CONFIG = {**LLAMA, "hidden_size": 128, "intermediate_size": 128, "num_key_value_heads": 4}
PROGRAMS = ("dllama", "dllama-api")
ASK = """
import json, sys, urllib.error, urllib.request
def ask(body):
    try:
        return urllib.request.urlopen("http://ring/v1/chat/completions", body, timeout=60).read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)
content = [{"type": "text", "text": "Hello"}]
chat = {"messages": [{"role": "user", "content": content}], "max_tokens": 3}
print(json.dumps([ask(b"{"), ask(b"{}"), ask(json.dumps(chat).encode())]))
"""


def specs(hub: Any) -> list[Object]:
    """A Model that is converted, and the ring that serves it."""
    tiny = model("tiny", hub)
    tiny["spec"] |= {
        "convert": {"distributedLlama": {"weights": "q40", "converter": {"cpu": "100m"}}},
        "facts": {"config": CONFIG, "weights": "2Mi"},
    }
    ring = spec(
        "Topology",
        "ring",
        engine="distributedLlama",
        image=IMAGE,
        model="tiny",
        shape={"nodes": 4, "groups": "statefulSet"},
        resources={"cpu": "50m"},
        drain="20s",
    )
    return [tiny, ring]


def pods(node: Node, namespace: str) -> dict[str, Object]:
    """Return the pods of the ring by name."""
    found = node.client.objects(POD, namespace, "app.kubernetes.io/name=ring")
    return {pod["metadata"]["name"]: pod for pod in found}


def is_ready(node: Node, namespace: str) -> bool:
    """Return whether the proxy of the root is ready, so that the Service has it."""
    status = pods(node, namespace).get("ring-0-0", {}).get("status", {})
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))


def asked(node: Node, namespace: str) -> list[str]:
    """Return the answers to a body that is no JSON, to one without messages, and to a chat."""
    answers: list[str] = json.loads(run_client(node, namespace, ASK))
    return answers


def log(node: Node, namespace: str, pod: str, container: str) -> str:
    """Return what a container printed."""
    return node.run(
        "kubectl", "logs", "--namespace", namespace, pod, "--container", container, check=False
    ).stdout


@pytest.mark.ran("StatefulSet", "Service", by="node")
@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "downloader"))
def test_a_ring_answers_and_survives_a_killed_worker(node: Node, node_namespace: str, tmp_path: Path) -> None:
    for name in ("convert", "ringproxy"):
        node.import_image(runtime_image(name))
    lines = [f"FROM {BASE}", *(f"COPY {name} /usr/local/bin/{name}" for name in PROGRAMS), ""]
    node.import_image(build_from(IMAGE, "\n".join(lines), dict.fromkeys(PROGRAMS, PEER.read_bytes())))
    repository = save_model(tmp_path / "model", CONFIG, random_tensors(CONFIG))
    hub = start_hub(node, {path.name: path.read_bytes() for path in repository.iterdir()})
    started = time.monotonic()
    try:
        apps = compiled(tmp_path / "specs", specs(hub), node_namespace, "generic")
        # The root comes first and its workers last, with the weights between them.
        ring = [each.body for each in apps["ring"].objects]
        workers = [body for body in ring if body["metadata"]["name"] == "ring-0-workers"]
        assert len(workers) == 1
        for body in [body for body in ring if body not in workers]:
            node.client.apply(body)
        for rendered in apps["tiny"].objects:
            node.client.apply(rendered.body)
        wait_until(
            lambda: "waiting for" in log(node, node_namespace, "ring-0-0", "wait-for-workers"),
            "the root waits for its workers",
            240,
            every=1.0,
        )
        node.client.apply(workers[0])
        wait_until(partial(is_ready, node, node_namespace), "the ring is ready", 240, every=0.5)
    finally:
        hub.__exit__()
    print(f"downloaded, converted and ready after {time.monotonic() - started:.0f} s")
    answers = asked(node, node_namespace)
    assert answers[:2] == ["400", "400"]
    assert "Hello-2/3" in json.loads(answers[2])["choices"][0]["message"]["content"]
    # Neither a probe nor the gate has ended a process.
    for name in ("ring-0-workers-1", "ring-0-workers-2", "ring-0-workers-3"):
        assert "ended with code" not in log(node, node_namespace, name, "serve")
    assert restarts(node, node_namespace) == {name: 0 for name in pods(node, node_namespace)}
    started = time.monotonic()
    (status,) = pods(node, node_namespace)["ring-0-workers-2"]["status"]["containerStatuses"]
    node.ctr(
        "tasks", "kill", "--all", "--signal", "SIGKILL", status["containerID"].removeprefix("containerd://")
    )
    wait_until(
        lambda: restarts(node, node_namespace)["ring-0-workers-2"] == 1,
        "the worker started again",
        60,
        every=0.5,
    )
    wait_until(
        lambda: "Hello-2/3" in asked(node, node_namespace)[2], "the ring answers again", 240, every=2.0
    )
    print(f"a worker was killed, the ring answers again after {time.monotonic() - started:.0f} s")
    node.client.delete(POD, "ring-0-workers-3", node_namespace)
    wait_until(
        lambda: "Hello-2/3" in asked(node, node_namespace)[2], "the ring answers again", 240, every=2.0
    )


def restarts(node: Node, namespace: str) -> dict[str, int]:
    """Return how often the containers of each pod started again."""
    return {
        name: sum(status["restartCount"] for status in pod["status"].get("containerStatuses", []))
        for name, pod in pods(node, namespace).items()
    }
