"""Stand-ins of vLLM that run only while there are requests: the picker holds the first ones, and KEDA starts a pod."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

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
TEAM, POLICIES, HOUR = "on-demand", ("prefix", "load"), timedelta(hours=1)
ASK = """
def timed(name):
    began = time.time()
    return ask(name), round(time.time() - began, 1)
with concurrent.futures.ThreadPoolExecutor(NUMBER) as pool:
    print(json.dumps(list(pool.map(timed, map(str, range(NUMBER))))))
"""


@pytest.fixture(scope="module")
def team(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An app for each policy, with Prometheus and KEDA; one of them has hours, too, which begin later."""
    node.import_image(stand_in())
    import_router(node)
    node.make_namespace(TEAM)
    keda = {"address": server.URL, "triggerAuthentication": LOGIN, "authModes": ["basic"]}
    autoscale = {"min": 0, "max": 2, "idleAfter": "15s", "prometheus": keda}
    hours = {"schedule": [window("Asia/Tokyo", HOUR, 2 * HOUR, 2)]}
    fields = {"monitoring": {"interval": "2s"}, "env": {"DELAY": "10", "SECONDS": "1"}}
    specs = [
        topology("prefix", router={"policy": "prefix"}, autoscale=autoscale, **fields),
        topology("load", router={"policy": "load", "replicas": 1}, autoscale={**autoscale, **hours}, **fields),
    ]
    apps = compiled(tmp_path_factory.mktemp(TEAM), specs, TEAM, "generic")
    prometheus = Prometheus(node)
    Keda(node)
    for each in login():
        node.client.create(each, TEAM)
    for app in apps.values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    prometheus.scrape([f"{TEAM}/{name}{suffix}" for name in POLICIES for suffix in ("", "-router")])
    for name in POLICIES:
        node.client.wait(DEPLOYMENT, f"{name}-router", TEAM, is_rolled_out, "rolled out")
    yield
    node.client.delete("v1/Namespace", TEAM)


def wait_for(node: Node, name: str, replicas: int) -> float:
    """Wait until so many pods run; return how long it took."""
    began = time.monotonic()

    def runs() -> bool:
        found = node.client.get(DEPLOYMENT, name, TEAM)
        return {found["spec"]["replicas"], found["status"].get("replicas", 0)} == {replicas}

    wait_until(runs, f"{name} has {replicas} pods", 240, every=1.0)
    return time.monotonic() - began


@pytest.mark.ran("ScaledObject", by=("node", "keda-operator", "keda-adapter", "envoy", "endpointPicker"))
@pytest.mark.ran("InferencePool", "PodMonitor", by=("node", "prometheus-operator"))
@pytest.mark.parametrize("policy", POLICIES)
def test_requests_to_no_replica_start_one_and_are_all_answered(node: Node, team: None, policy: str) -> None:
    print(f"{policy}: without requests, no pod runs after {wait_for(node, policy, 0):.0f} s")
    for number in (1, 10):
        code = program(ASK, f"http://{policy}/v1/completions", "m", NUMBER=number)
        answers = json.loads(run_client(node, TEAM, code))
        assert [status for status, _ in answers] == [200] * number
        print(f"{policy}: {number} at once are answered after {max(seconds for _, seconds in answers)} s")
        print(f"{policy}: no pod runs {wait_for(node, policy, 0):.0f} s after the last answer")
