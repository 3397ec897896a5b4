"""A router with a picker in pods on a real node, in front of stand-ins of vLLM: its parts are killed under load."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.cluster.apps import compiled
from tests.cluster.client import Object
from tests.cluster.node import Node
from tests.cluster.router_app import Load, import_router, kill
from tests.cluster.stand_in_vllm import stand_in, topology
from tests.cluster.test_node_rollout import is_rolled_out, ready_pods

pytestmark = pytest.mark.engine

DEPLOYMENT = "apps/v1/Deployment"
TEAM, URL, THREADS = "router", "http://chat/v1/completions", 6


@pytest.fixture(scope="module")
def chat(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two engines behind two pods of a router."""
    node.import_image(stand_in())
    import_router(node)
    node.make_namespace(TEAM)
    block = topology("chat", shape={"replicas": 2}, router={"policy": "prefix"}, env={"SECONDS": "0.5"}, drain="10s")
    for rendered in compiled(tmp_path_factory.mktemp(TEAM), [block], TEAM, "generic")["chat"].objects:
        node.client.apply(rendered.body)
    for name in ("chat", "chat-router"):
        node.client.wait(DEPLOYMENT, name, TEAM, is_rolled_out, "rolled out")
    yield
    node.client.delete("v1/Namespace", TEAM)


def pods(node: Node, component: str) -> list[Object]:
    """Return the ready pods of a component."""
    found = ready_pods(node, TEAM, "chat")
    return [pod for pod in found if pod["metadata"]["labels"]["app.kubernetes.io/component"] == component]


@pytest.mark.ran("Deployment", "Service", "InferencePool", by=("node", "envoy", "endpointPicker"))
def test_no_request_is_lost_when_the_picker_dies(node: Node, chat: None) -> None:
    load = Load(node, TEAM, URL, "m", THREADS)
    began = time.monotonic()
    for pod in pods(node, "router"):
        kill(node, pod, "picker")
    counted = load.stop()
    print(f"both pickers killed, back after {time.monotonic() - began:.0f} s: {counted}")
    assert counted.keys() == {"200"}


def test_no_request_is_lost_when_the_router_is_rolled_out(node: Node, chat: None) -> None:
    load = Load(node, TEAM, URL, "m", THREADS)
    template = {"metadata": {"annotations": {"kaigen.test/rolled": "1"}}}
    node.client.patch(DEPLOYMENT, "chat-router", TEAM, {"spec": {"template": template}})
    node.client.wait(DEPLOYMENT, "chat-router", TEAM, is_rolled_out, "rolled out")
    counted = load.stop()
    print(f"the router rolled out: {counted}")
    assert counted.keys() == {"200"}


def test_only_the_requests_of_a_killed_engine_are_lost(node: Node, chat: None) -> None:
    load = Load(node, TEAM, URL, "m", THREADS)
    kill(node, pods(node, "serve")[0], "serve")
    counted = load.stop()
    print(f"an engine killed: {counted}")
    assert sum(number for status, number in counted.items() if status != "200") <= THREADS
