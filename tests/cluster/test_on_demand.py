"""A ring that runs only while there are requests: Envoy holds the first ones, and KEDA starts and stops the ring."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaigen.pipeline.result import Compiled
from runtimes.convert.tests.tiny_models import LLAMA, random_tensors, save_model
from runtimes.downloader.tests.hub import Hub
from tests.cluster.apps import compiled, spec
from tests.cluster.client import Object
from tests.cluster.envoy import locate_envoy
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.images import BASE, build_from, default_image, runtime_image
from tests.cluster.keda import Keda
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node import run_client
from tests.cluster.test_node_ring import IMAGE, PEER, PROGRAMS
from tests.cluster.vllm_app import model, start_hub

pytestmark = pytest.mark.engine

GROUPS = "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet"
DEPLOYMENT = "apps/v1/Deployment"
CONFIG = {**LLAMA, "hidden_size": 128, "intermediate_size": 128, "num_key_value_heads": 4}
ASK = """
import concurrent.futures, json, time, urllib.request
def ask(number):
    began = time.time()
    chat = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}], "max_tokens": 3}
    request = urllib.request.Request("http://ring/v1/chat/completions", json.dumps(chat).encode())
    with urllib.request.urlopen(request, timeout=200) as answer:
        body = json.load(answer)
        return answer.status, body["choices"][0]["message"]["content"], round(time.time() - began)
with concurrent.futures.ThreadPoolExecutor() as pool:
    print(json.dumps(list(pool.map(ask, range(3)))))
"""


@pytest.fixture(scope="module")
def hub(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A Hub with the model."""
    repository = save_model(tmp_path_factory.mktemp("model"), CONFIG, random_tensors(CONFIG))
    serving = start_hub(node, {path.name: path.read_bytes() for path in repository.iterdir()})
    yield serving
    serving.__exit__()


@pytest.fixture
def ring(node: Node, node_namespace: str, node_groups: GroupControllers, hub: Hub, tmp_path: Path) -> Compiled:
    """A ring of two nodes with its Model, a router, and KEDA."""
    for name in ("convert", "ringproxy"):
        node.import_image(runtime_image(name))
    lines = [f"FROM {BASE}", *(f"COPY {name} /usr/local/bin/{name}" for name in PROGRAMS), ""]
    node.import_image(build_from(IMAGE, "\n".join(lines), dict.fromkeys(PROGRAMS, PEER.read_bytes())))
    envoy = {"envoy": locate_envoy().read_bytes()}
    node.import_image(build_from(default_image("envoy"), f"FROM {BASE}\nCOPY envoy /usr/local/bin/envoy\n", envoy))
    node_groups.start_leader_worker_set()
    Keda(node)
    apps = compiled(tmp_path / "specs", specs(hub), node_namespace, "generic")
    for app in apps.values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    return apps["ring"]


def specs(hub: Hub) -> list[Object]:
    """Return the Model, and the ring that serves it on demand."""
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
        shape={"nodes": 2, "groups": "leaderWorkerSet"},
        resources={"cpu": "50m"},
        probes={"startup": "60s"},
        drain="10s",
        autoscale={"min": 0, "max": 1, "target": 1, "idleAfter": "20s"},
        router={},
    )
    return [tiny, ring]


def wait_for_rings(node: Node, namespace: str, number: int) -> float:
    """Wait until so many rings run.

    Returns:
        How many seconds it took.
    """
    began = time.monotonic()

    def runs() -> bool:
        found = node.client.get(GROUPS, "ring", namespace)
        counts = {found["spec"]["replicas"], found.get("status", {}).get("readyReplicas", 0)}
        pods = node.client.objects("v1/Pod", namespace, "app.kubernetes.io/name=ring")
        parts = [each for each in pods if each["metadata"]["labels"]["app.kubernetes.io/component"] != "router"]
        return counts == {number} and len(parts) == 2 * number

    wait_until(runs, f"{number} rings run", 240, every=1.0)
    return time.monotonic() - began


@pytest.mark.promise("Koldun", "Step 2, serverless triggers: activation on demand")
@pytest.mark.ran("ScaledObject", by=("node", "keda-operator", "keda-adapter"))
@pytest.mark.ran("LeaderWorkerSet", by=("node", "lws"))
@pytest.mark.ran("Deployment", "Service", by=("node", "envoy"))
def test_requests_to_a_ring_that_does_not_run_start_it_and_are_answered(
    node: Node, node_namespace: str, ring: Compiled
) -> None:
    wait_until(
        lambda: node.client.get(DEPLOYMENT, "ring-router", node_namespace).get("status", {}).get("readyReplicas") == 2,
        "the router is ready",
        120,
    )
    print(f"without requests, the ring stops after {wait_for_rings(node, node_namespace, 0):.0f} s")
    for _ in range(2):
        answers = json.loads(run_client(node, node_namespace, ASK))
        assert [status for status, _, _ in answers] == [200] * 3
        assert all("Hello-0/1" in text for _, text, _ in answers)
        print(f"the first requests are answered after {[seconds for _, _, seconds in answers]} s")
        print(f"and the ring stops {wait_for_rings(node, node_namespace, 0):.0f} s after the last one")
