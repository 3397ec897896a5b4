"""Two real vLLM engines on a node behind a router: prefixes stay with one, and a killed picker loses no request."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from kaigen.pipeline.result import Compiled
from tests.cluster.apps import compiled
from tests.cluster.client import Object
from tests.cluster.network import connect
from tests.cluster.node import Node
from tests.cluster.router_app import Load, import_router, kill, program
from tests.cluster.test_node import run_client
from tests.cluster.test_node_rollout import is_rolled_out, ready_pods
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import CONTEXT, model, start_hub, topology
from tests.cluster.vllm_image import vllm_image

pytestmark = pytest.mark.engine

DEPLOYMENT = "apps/v1/Deployment"
ENGINE = {"app.kubernetes.io/name": "chat", "app.kubernetes.io/component": "serve"}
ROUTED, PLAIN = "http://chat/v1/completions", "http://plain/v1/completions"
TALKS = """
def running():
    texts = [urllib.request.urlopen(f"http://{each}:8000/metrics").read().decode() for each in ENGINES]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("vllm:num_requests_running{")]
    return sum(float(line.split()[-1]) for line in lines)
def talk(letter):
    start = (f"{START} {letter} " * 110)[:768]
    return [ask(f"{start}{number}", 8 if number else 200) for number in range(5)]
with concurrent.futures.ThreadPoolExecutor() as pool:
    talks = []
    for number, letter in enumerate("ABCD"):
        end = time.time() + 20
        while running() < number and time.time() < end:
            time.sleep(0.05)
        time.sleep(0.4)  # The picker reads the metrics every 0.2 s.
        talks.append(pool.submit(talk, letter))
    print(json.dumps([each.result() for each in talks]))
"""
"""Four talks at a time, each of which begins when the others run; the five prompts of each begin with the same 768
tokens, which are letters: six blocks of vLLM's cache."""

BLOCKS = 18
"""Blocks of the cache of an engine, one of which vLLM keeps: two talks fit, three do not."""


@pytest.fixture(scope="module")
def chat(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compiled]:
    """Two engines behind a router, and a Service of the same pods without one."""
    hub = start_hub(node, base_files(context=CONTEXT))
    node.import_image(vllm_image())
    import_router(node)
    node.make_namespace("routed")
    fields = {"contextLength": 1024, "engineArgs": {"enforce-eager": True, "num-gpu-blocks-override": BLOCKS}}
    router = {"policy": "prefix", "replicas": 1}
    chat = topology("chat", "tiny", shape={"replicas": 2}, router=router, drain="10s", **fields)
    specs = [model("tiny", hub), chat]
    apps = compiled(tmp_path_factory.mktemp("routed"), specs, "routed", "generic")
    for app in apps.values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    plain = {"selector": ENGINE, "ports": [{"port": 80, "targetPort": 8000}]}
    node.client.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "plain"}, "spec": plain}, "routed")
    for name in ("chat", "chat-router"):
        node.client.wait(DEPLOYMENT, name, "routed", is_rolled_out, "rolled out", timeout=420)
    yield apps["chat"]
    node.client.delete("v1/Namespace", "routed")
    hub.__exit__()


def engines(node: Node) -> list[Object]:
    """Return the ready pods with an engine."""
    found = ready_pods(node, "routed", "chat")
    return [pod for pod in found if pod["metadata"]["labels"]["app.kubernetes.io/component"] == "serve"]


def hits(node: Node) -> float:
    """Return how many tokens of prompts all engines found in their caches."""
    total = 0.0
    for pod in engines(node):
        address = pod["status"]["podIP"]
        with closing(http.client.HTTPConnection(address, 8000, timeout=20)) as connection:
            connection.sock = connect(node.network, (address, 8000), 10)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        total += sum(float(each) for each in re.findall(r"^vllm:prefix_cache_hits_total\{.*\} (\S+)$", text, re.M))
    return total


def routers(node: Node) -> list[Object]:
    """Return the ready pods of the router."""
    found = ready_pods(node, "routed", "chat")
    return [pod for pod in found if pod["metadata"]["labels"]["app.kubernetes.io/component"] == "router"]


@pytest.mark.ran(
    "Deployment", "Service", "InferencePool", "Role", "RoleBinding", by=("node", "envoy", "endpointPicker", "vllmCpu")
)
def test_the_router_finds_every_prefix_in_a_cache_and_a_service_does_not(node: Node, chat: Compiled) -> None:
    found = {}
    addresses = [pod["status"]["podIP"] for pod in engines(node)]
    for name, url, pods in (("Service", PLAIN, 1), ("one router", ROUTED, 1), ("two routers", ROUTED, 2)):
        node.client.patch(DEPLOYMENT, "chat-router", "routed", {"spec": {"replicas": pods}})
        node.client.wait(DEPLOYMENT, "chat-router", "routed", is_rolled_out, "rolled out")
        before = hits(node)
        code = program(TALKS, url, "chat", START=name, ENGINES=addresses)
        assert json.loads(run_client(node, "routed", code)) == [[200] * 5] * 4
        found[name] = hits(node) - before
    print(f"tokens found in caches: {found}")
    assert found["one router"] >= 0.9 * 4 * 4 * 768
    assert found["one router"] >= 1.1 * found["Service"]


@pytest.mark.ran("Deployment", "Service", by=("node", "envoy", "endpointPicker", "vllmCpu"))
def test_no_request_is_lost_with_a_picker_or_in_a_rollout_of_the_router(node: Node, chat: Compiled) -> None:
    load = Load(node, "routed", ROUTED, "chat")
    began = time.monotonic()
    kill(node, routers(node)[0], "picker")
    print(f"the picker is back after {time.monotonic() - began:.1f} s")
    time.sleep(3)
    template = {"metadata": {"annotations": {"kaigen.test/rolled": "1"}}}
    node.client.patch(DEPLOYMENT, "chat-router", "routed", {"spec": {"template": template}})
    node.client.wait(DEPLOYMENT, "chat-router", "routed", is_rolled_out, "rolled out", timeout=180)
    counted = load.stop()
    print(f"the picker killed and the router rolled out: {counted}")
    assert set(counted) == {"200"}
    assert counted["200"] > 20
