"""Stand-ins of vLLM that run only while there are requests: the picker holds the first ones, and KEDA starts a pod."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta

import pytest

from kaigen.pipeline.result import Compiled
from tests.cluster import prometheus as server
from tests.cluster.apps import compiled
from tests.cluster.keda import Keda
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.prometheus import Prometheus
from tests.cluster.router_app import import_router, program
from tests.cluster.stand_in_vllm import stand_in, topology
from tests.cluster.test_hours import window
from tests.cluster.test_node import run_client
from tests.cluster.test_node_rollout import is_rolled_out
from tests.cluster.test_scaling import LOGIN, login

pytestmark = pytest.mark.engine

DEPLOYMENT = "apps/v1/Deployment"
TEAM, HOUR = "on-demand", timedelta(hours=1)
ASK = """
def timed(name):
    began = time.time()
    return ask(name), round(time.time() - began, 1)
with concurrent.futures.ThreadPoolExecutor(NUMBER) as pool:
    print(json.dumps(list(pool.map(timed, map(str, range(NUMBER))))))
"""


@pytest.fixture(scope="module")
def apps(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Compiled]]:
    """An app that KEDA scales by what its routers say, in later hours to two; and one by Prometheus."""
    node.import_image(stand_in())
    import_router(node)
    node.make_namespace(TEAM)
    Keda(node)
    scale = {"min": 0, "max": 2, "idleAfter": "15s"}
    hours = {"target": 5, "schedule": [window("Asia/Tokyo", HOUR, 2 * HOUR, 2)]}
    keda = {"address": server.URL, "triggerAuthentication": LOGIN, "authModes": ["basic"]}
    by_queue = {"autoscale": {**scale, "prometheus": keda}, "monitoring": {"interval": "2s"}}
    env = {"DELAY": "10", "SECONDS": "1"}
    specs = [
        topology("asked", router={"policy": "prefix"}, autoscale={**scale, **hours}, env=env),
        topology("queue", router={"policy": "load"}, env=env, **by_queue),
    ]
    yield compiled(tmp_path_factory.mktemp(TEAM), specs, TEAM, "generic")
    node.client.delete("v1/Namespace", TEAM)


def start(node: Node, app: Compiled, name: str) -> None:
    """Apply an app and wait for its routers."""
    for rendered in app.objects:
        node.client.apply(rendered.body)
    node.client.wait(DEPLOYMENT, f"{name}-router", TEAM, is_rolled_out, "rolled out")


def wait_for(node: Node, name: str, replicas: int) -> float:
    """Wait until so many pods run; return how long it took."""
    began = time.monotonic()

    def runs() -> bool:
        found = node.client.get(DEPLOYMENT, name, TEAM)
        return {found["spec"]["replicas"], found["status"].get("replicas", 0)} == {replicas}

    wait_until(runs, f"{name} has {replicas} pods", 240, every=1.0)
    return time.monotonic() - began


def ask(node: Node, name: str) -> None:
    """Send one request, and then ten at once, to no pod."""
    print(f"{name}: without requests, no pod runs after {wait_for(node, name, 0):.0f} s")
    for number in (1, 10):
        code = program(ASK, f"http://{name}/v1/completions", "m", NUMBER=number)
        answers = json.loads(run_client(node, TEAM, code))
        assert [status for status, _ in answers] == [200] * number
        print(f"{name}: {number} at once are answered after {max(seconds for _, seconds in answers)} s")
        print(f"{name}: no pod runs {wait_for(node, name, 0):.0f} s after the last answer")


@pytest.mark.ran("ScaledObject", by=("node", "keda-operator", "keda-adapter", "envoy", "endpointPicker"))
@pytest.mark.ran("InferencePool", by=("node", "endpointPicker"))
def test_keda_asks_the_routers_and_every_request_to_no_replica_is_answered(
    node: Node, apps: Mapping[str, Compiled]
) -> None:
    start(node, apps["asked"], "asked")
    ask(node, "asked")


@pytest.mark.ran("ScaledObject", by=("node", "keda-operator", "keda-adapter", "envoy", "endpointPicker"))
@pytest.mark.ran("PodMonitor", by=("node", "prometheus-operator"))
def test_prometheus_has_the_queue_and_every_request_to_no_replica_is_answered(
    node: Node, apps: Mapping[str, Compiled]
) -> None:
    prometheus = Prometheus(node)
    for each in login():
        node.client.create(each, TEAM)
    start(node, apps["queue"], "queue")
    prometheus.scrape([f"{TEAM}/queue", f"{TEAM}/queue-router"])
    ask(node, "queue")
