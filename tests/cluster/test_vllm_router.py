"""Two real vLLM engines on a node behind a router: talks stay with one, and a killed picker loses no request."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from statistics import mean

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
def asked():
    texts = [urllib.request.urlopen(f"http://{each}:8000/metrics").read().decode() for each in ENGINES]
    found = [[line for line in text.splitlines() if line.startswith(QUERIES)] for text in texts]
    return [sum(float(line.split()[-1]) for line in lines) for lines in found]
def ask_in(talk, turn):
    return ask((f"{START} {talk} " * 300)[:TOKENS] + str(turn))
for attempt in range(30):
    talks, before = [f"{letter}{attempt}" for letter in "ABCD"], asked()
    first = [ask_in(talk, 0) for talk in talks]
    time.sleep(1)
    grown = [after - start for after, start in zip(asked(), before)]
    if not EVEN or len(set(grown)) == 1:
        break
else:
    raise SystemExit("two talks never began at each engine")
print(json.dumps([*first, *(ask_in(talk, turn) for turn in range(1, 5) for talk in talks)]))
"""
"""Four talks of five prompts, which take turns. The prompts of a talk begin with the same tokens, which are letters.
While no request runs, a router gives the first prompt of a talk to any engine; with EVEN, other talks begin until each
engine has two, as under load."""

QUERIES = "vllm:prefix_cache_queries_total{"
"""Tokens of prompts that an engine looked for in its cache."""

SHARED = 11 * 128
"""Tokens that the prompts of a talk share: eleven blocks of vLLM's cache. A prompt and its answer need two more."""

BLOCKS = 2 * 13 + 1
"""Blocks of the cache of an engine, one of which vLLM keeps: two talks fit, and not all four."""

REUSED = 4 * 4 * SHARED
"""Tokens that would be in a cache if each talk stayed with one engine: those of all prompts but the first ones."""


@pytest.fixture(scope="module")
def chat(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compiled]:
    """Two engines behind a router, and a Service of the same pods without one."""
    hub = start_hub(node, base_files(context=CONTEXT))
    node.import_image(vllm_image())
    import_router(node)
    node.make_namespace("routed")
    fields = {"contextLength": 2048, "engineArgs": {"enforce-eager": True, "num-gpu-blocks-override": BLOCKS}}
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
def test_the_router_finds_twice_as_many_tokens_in_caches_as_a_service(node: Node, chat: Compiled) -> None:
    addresses = [pod["status"]["podIP"] for pod in engines(node)]

    def found(name: str, url: str, routers: int = 1) -> float:
        even = url == ROUTED
        node.client.patch(DEPLOYMENT, "chat-router", "routed", {"spec": {"replicas": routers}})
        node.client.wait(DEPLOYMENT, "chat-router", "routed", is_rolled_out, "rolled out")
        before = hits(node)
        code = program(TALKS, url, "chat", START=name, ENGINES=addresses, TOKENS=SHARED, QUERIES=QUERIES, EVEN=even)
        assert json.loads(run_client(node, "routed", code)) == [200] * 20
        return hits(node) - before

    # A Service chooses at random, so one of its runs says little.
    plain = [found(f"plain {number}", PLAIN) for number in range(3)]
    one, two = found("one", ROUTED), found("two", ROUTED, routers=2)
    print(f"tokens found in caches, of {REUSED}: Service {plain}, one router {one}, two routers {two}")
    assert one >= 0.9 * REUSED
    assert one >= 2 * mean(plain)


def test_no_request_is_lost_with_a_picker_or_in_a_rollout_of_the_router(node: Node, chat: Compiled) -> None:
    node.client.patch(DEPLOYMENT, "chat-router", "routed", {"spec": {"replicas": 2}})
    node.client.wait(DEPLOYMENT, "chat-router", "routed", is_rolled_out, "rolled out")
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
