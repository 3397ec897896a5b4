"""The real vLLM over two pods on a real node: it answers, notices a lost worker at once, and answers again."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtimes.downloader.tests.hub import Hub
from tests.cluster.apps import compiled, find
from tests.cluster.client import Object, is_true
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.network import connect
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node_groups import kill, pods
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import CONTEXT, model, start_hub, topology
from tests.cluster.vllm_image import vllm_image

pytestmark = pytest.mark.engine

SHAPE = {"nodes": 2, "tensorParallel": 2, "groups": "leaderWorkerSet"}
# The image of the tests has no C++ compiler, which torch.compile needs for the embedding of several ranks.
# By default, each rank binds its threads to a NUMA node of its own, even on another machine.
ENV = {"VLLM_CPU_KVCACHE_SPACE": "1", "TORCHDYNAMO_DISABLE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}


@pytest.fixture
def hub(node: Node) -> Iterator[Hub]:
    """A Hub with the model."""
    serving = start_hub(node, base_files(context=CONTEXT))
    yield serving
    serving.__exit__()


def ask(node: Node, address: tuple[str, int], path: str, body: Object | None = None) -> tuple[int, Object]:
    """Send a request; return status and JSON, which is empty for an empty answer.

    Raises:
        OSError: there was no answer.
    """
    client = http.client.HTTPConnection(*address, timeout=60)
    client.sock = connect(node.network, address, 5)
    try:
        headers = {"Content-Type": "application/json"}
        client.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
        answer = client.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")
    finally:
        client.close()


def finish_reason(node: Node, address: tuple[str, int]) -> str:
    """Return why an answer of 20 tokens ended."""
    messages = [{"role": "user", "content": "Hello"}]
    body = {"model": "pair", "messages": messages, "max_tokens": 20, "ignore_eos": True}
    status, answer = ask(node, address, "/v1/chat/completions", body)
    assert status == 200, answer
    return str(answer["choices"][0]["finish_reason"])


def is_healthy(node: Node, address: tuple[str, int]) -> bool:
    """Whether the leader's health is good."""
    try:
        return ask(node, address, "/health")[0] == 200
    except OSError:
        return False


@pytest.mark.ran("LeaderWorkerSet", "Service", by=("node", "lws"))
def test_two_pods_serve_one_replica_again_after_a_worker_was_lost(
    node: Node, node_namespace: str, node_groups: GroupControllers, hub: Hub, tmp_path: Path
) -> None:
    node.import_image(vllm_image())
    node_groups.start_leader_worker_set()
    specs = [model("tiny", hub), topology("pair", "tiny", shape=SHAPE, env=ENV)]
    apps = compiled(tmp_path, specs, node_namespace, "generic")
    for app in apps.values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    group = find(apps["pair"], "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    probe = group["leaderTemplate"]["spec"]["containers"][0]["readinessProbe"]
    noticed_by_probe = probe["periodSeconds"] * probe["failureThreshold"]

    def serves() -> bool:
        found = pods(node, node_namespace)
        return len(found) == 2 and all(is_true(pod, "Ready") for pod in found.values())

    wait_until(serves, "both pods are ready", 900, every=1)
    service = node.client.get("v1/Service", "pair", node_namespace)["spec"]["clusterIP"]
    assert finish_reason(node, (service, 80)) == "length"

    before = pods(node, node_namespace)
    leader = before["serve"]["status"]["podIP"]
    started = time.monotonic()
    kill(node, node_namespace, "worker")
    wait_until(lambda: not is_healthy(node, (leader, 8000)), "the health is bad", noticed_by_probe)
    noticed = time.monotonic() - started
    old = {pod["metadata"]["uid"] for pod in before.values()}
    wait_until(
        lambda: not old & {pod["metadata"]["uid"] for pod in pods(node, node_namespace).values()},
        "both pods are new",
        every=0.5,
    )
    wait_until(serves, "both pods are ready again", 900, every=1)
    print(f"noticed after {noticed:.1f} s, ready again after {time.monotonic() - started:.0f} s")
    assert finish_reason(node, (service, 80)) == "length"
