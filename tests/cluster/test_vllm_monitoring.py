"""Alerts, dashboard and traces of the real vLLM behind a router on a real node, with a real Prometheus.

The rules are those that are rendered, in the files that the operator writes; `for` and the windows of `rate` are
divided by 20. The cause is too many requests: they wait, are preempted, are late, and the engine refuses some with 503.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from kaigen.compile.builders.alerts import alert_table
from kaigen.pipeline.result import Compiled
from tests.cluster.apps import POD, client_pod, compiled
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.prometheus import Prometheus, panels, shorten
from tests.cluster.router_app import import_router, program
from tests.cluster.test_node import run_client
from tests.cluster.test_node_rollout import is_rolled_out
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import model, start_hub, topology
from tests.cluster.vllm_image import vllm_image
from tests.cluster.watched import namespaces_and_names
from tests.otlp import Collector, Span, collecting

pytestmark = pytest.mark.engine

DEPLOYMENT = "apps/v1/Deployment"
TEAM, URL, COLLECTOR = "vllm-watched", "http://chat/v1/completions", "collector.test"
RULE, MONITOR = "PrometheusRule", "PodMonitor"
FASTER, LONGEST = 20, 300
CONTEXT, BLOCK, RUNNING, QUEUED = 2048, 128, 64, 48
CLIENT = "4bf92f3577b34da6a3ce929d0e0e4736"
"""Identifier of the trace of a client."""

PARENT = "00f067aa0ba902b7"
ONCE = """
body = json.dumps({"model": MODEL, "prompt": "Hello", "max_tokens": 9, "temperature": 0.5}).encode()
headers = {"content-type": "application/json", "traceparent": TRACE}
with urllib.request.urlopen(urllib.request.Request(URL, body, headers), timeout=300) as answer:
    print(json.dumps(json.load(answer)["usage"]))
"""
LOAD = """
def post(prompt):
    given = {"model": MODEL, "prompt": prompt, "max_tokens": TOKENS, "ignore_eos": True, "temperature": 0}
    request = urllib.request.Request(URL, json.dumps(given).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return f"lost: {error}"
def run(number):
    turn = 0
    while not os.path.exists("/tmp/stop"):
        turn += 1
        status = post(f"{number} {turn} ".ljust(PROMPT, "x"))
        with lock:
            seen[str(status)] += 1
        time.sleep(status != 200)
threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(seen))
"""
"""Asks in several threads until `/tmp/stop` exists."""

FIRES = ("queue", "kvCache", "preemptions", "firstToken", "errorBudgetFast", "errorBudgetSlow")


@dataclass
class Watched:
    """The app and what watches it.

    Attributes:
        app: the app.
        prometheus: scrapes it, and evaluates its rules.
        collector: gets its traces.
    """

    app: Compiled
    prometheus: Prometheus
    collector: Collector

    def alerts(self, state: str) -> set[str]:
        """Return the names of the alerts in a state."""
        found = self.prometheus.ask("alerts")["alerts"]
        return {each["labels"]["alertname"] for each in found if each["state"] == state}

    def dashboard(self) -> Any:
        """Return the dashboard."""
        bodies = [each.body for each in self.app.objects]
        (found,) = [body for body in bodies if body["metadata"]["name"] == "chat-dashboard"]
        return json.loads(found["data"][f"{TEAM}-chat.json"])


class Load:
    """A pod that asks until the block ends."""

    def __init__(self, node: Node, threads: int) -> None:
        self._node = node
        code = program(LOAD, URL, "chat", THREADS=threads, PROMPT=BLOCK - 8, TOKENS=3 * BLOCK)
        self._name = node.client.create(client_pod(code), TEAM)["metadata"]["name"]

    def __enter__(self) -> None:
        phase = "Running"
        self._node.client.wait(POD, self._name, TEAM, lambda found: found["status"]["phase"] == phase, "running")

    def __exit__(self, *_: object) -> None:
        place = ("--namespace", TEAM, self._name)
        self._node.run("kubectl", "exec", *place, "--", "touch", "/tmp/stop")
        over = {"Succeeded", "Failed"}
        self._node.client.wait(POD, self._name, TEAM, lambda found: found["status"]["phase"] in over, "over", 300)
        print("answers:", self._node.run("kubectl", "logs", *place).stdout)


@pytest.fixture(scope="module")
def watched(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """One engine, which runs 64 requests at once, behind a router."""
    with ExitStack() as stack:
        hub = start_hub(node, base_files(context=CONTEXT))
        stack.callback(hub.__exit__)
        node.name_host(COLLECTOR)
        with node.network.entered():
            collector = stack.enter_context(collecting(node.network.host))
        node.import_image(vllm_image())
        import_router(node)
        node.make_namespace(TEAM)
        prometheus = Prometheus(node, namespace="monitoring-vllm", port=9091)
        monitoring = {
            # The cache is not quite full while the requests of one moment end.
            "alerts": {"rules": {"kvCache": {"above": 0.8, "hold": "2m"}}},
            "slo": {"availability": "99.9%", "ttft": {"p95": "1500ms"}},
            "dashboard": {},
            "traces": {"endpoint": collector.grpc.replace(node.network.host, COLLECTOR)},
        }
        fields = {
            "contextLength": CONTEXT,
            "concurrency": RUNNING,
            "engineArgs": {
                "enforce-eager": True,
                # One block stays empty.
                "num-gpu-blocks-override": RUNNING + 1,
                "max-num-queued-reqs": RUNNING + QUEUED,
            },
            "router": {"policy": "load"},
        }
        specs = [model("tiny", hub), topology("chat", "tiny", monitoring=monitoring, **fields)]
        app = compiled(tmp_path_factory.mktemp(TEAM), specs, TEAM, "generic")
        for each in app.values():
            for rendered in each.objects:
                node.client.apply(rendered.body)
        bodies = [each.body for each in app["chat"].objects]
        monitors, rules = (namespaces_and_names(bodies, kind) for kind in (MONITOR, RULE))
        for name in ("chat", "chat-router"):
            node.client.wait(DEPLOYMENT, name, TEAM, is_rolled_out, "rolled out", timeout=420)
        prometheus.scrape(monitors, rules, partial(shorten, faster=FASTER))
        yield Watched(app["chat"], prometheus, collector)
        node.client.delete("v1/Namespace", TEAM)


@pytest.mark.ran("Deployment", "Service", by=("node", "envoy", "endpointPicker", "vllmCpu"))
def test_spans_of_the_router_and_of_the_engine_are_one_trace(node: Node, watched: Watched) -> None:
    usage = json.loads(run_client(node, TEAM, program(ONCE, URL, "chat", TRACE=f"00-{CLIENT}-{PARENT}-01")))
    found: dict[str, list[Span]] = {}

    def arrived() -> bool:
        found.update({each: watched.collector.of(each) for each in ("chat-router", "chat")})
        return all(CLIENT in {span.trace for span in spans} for spans in found.values())

    wait_until(arrived, "spans of both arrive", 60, 0.5)
    routed = [span for span in found["chat-router"] if span.trace == CLIENT]
    (asked,) = [span for span in found["chat"] if span.trace == CLIENT]
    print(f"span of vLLM: {asked}")
    assert PARENT in {span.parent for span in routed}
    assert asked.parent in {span.identifier for span in routed}
    assert asked.attributes["gen_ai.usage.prompt_tokens"] == str(usage["prompt_tokens"])
    assert asked.attributes["gen_ai.usage.completion_tokens"] == str(usage["completion_tokens"])
    assert asked.attributes["gen_ai.request.temperature"] == "0.5"
    assert float(asked.attributes["gen_ai.latency.time_to_first_token"]) > 0


def test_no_alert_fires_while_one_client_asks(node: Node, watched: Watched) -> None:
    with Load(node, 1):
        up = 'count(count by (job) (up{job=~".*/chat.*"} == 1))'
        wait_until(lambda: watched.prometheus.value(up) == 2, "the engine and its router are scraped", 60, 0.5)
        began = time.monotonic()
        while time.monotonic() - began < 50:
            assert watched.alerts("firing") == set()
            time.sleep(0.5)


def test_too_many_requests_fire_every_alert_of_the_engine(node: Node, watched: Watched) -> None:
    wanted = {f"Kaigen{name[0].upper()}{name[1:]}" for name in FIRES}
    assert set(FIRES) == {name for name, row in alert_table().items() if "engine" in row["by"]}
    fired: set[str] = set()

    def all_fired() -> bool:
        fired.update(watched.alerts("firing"))
        return fired >= wanted

    with Load(node, RUNNING + 2 * QUEUED):
        try:
            wait_until(all_fired, "the alerts fire", LONGEST, 0.5)
        except TimeoutError as error:
            error.add_note(f"did not fire: {sorted(wanted - fired)}; pending: {sorted(watched.alerts('pending'))}")
            raise
        assert fired == wanted
        lines = panels(watched.dashboard())
        assert len(lines) >= 14
        empty = [line for line in lines if watched.prometheus.value(line[1]) is None]
        assert empty == []
