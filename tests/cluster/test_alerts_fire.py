"""Every alert, fired by its cause in a real Prometheus with the rules of its operator, and the queries of dashboards.

Real are Prometheus and its operator, kube-state-metrics, the API server with its controllers, JobSet,
LeaderWorkerSet, Kubeflow Trainer, the downloader with a Hub that stalls, the reaper, and Envoy. Pods are simulated. An
exporter serves the metrics of the engine, with names that `tests/unit/catalog/test_metrics.py` compares with those of
vLLM; the alerts of the real vLLM fire in `test_vllm_monitoring.py`.

The rules are those that are rendered, in the files that the operator writes. Only times are shorter: `for` and the
windows of `rate` are divided by 60, so that an hour is a minute.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kaigen.compile.builders.alerts import alert_table
from runtimes.downloader.tests.hub import Handler, Hub
from tests import helm
from tests.cluster import downloader, reaper, watched
from tests.cluster import test_endpoint as endpoint
from tests.cluster.apps import POD, compiled
from tests.cluster.client import Object
from tests.cluster.envoy import locate_envoy
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.kube_state_metrics import KubeStateMetrics
from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports, wait_until
from tests.cluster.prometheus import Prometheus, panels, shorten
from tests.cluster.simulate import set_course

pytestmark = pytest.mark.engine

TEAM, TOOLS = "watched", "watched-tools"
QUIET = 70
"""Seconds without an alert: longer than the longest `for`, which is an hour."""
LONGEST = 420
EXPIRING = 270
"""Seconds until the token of `chat` has so little time left that its alert begins."""
INSTANCE, COMPONENT = "app.kubernetes.io/instance", "app.kubernetes.io/component"
ADDRESSES = {
    f"{INSTANCE}=chat,{COMPONENT}=serve": "127.0.77.1",
    # Both are Envoy: the names of its metrics are the same.
    f"{INSTANCE}=chat,{COMPONENT}=router": "127.0.77.2",
    f"{INSTANCE}=models": "127.0.77.3",
}
STALLED, REAPER = "127.0.77.4", "127.0.77.5"
ENDED = threading.Event()
RULE, MONITOR = "PrometheusRule", "PodMonitor"
DEPLOYMENT = "apps/v1/Deployment"
NAME = re.compile(r"\b(?:vllm:|kube_|kaigen_|envoy_|http_)[a-z0-9_]+(?=\{)")
REAPER_VALUES = {
    "namespaces": [TEAM],
    "podMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True, "alertLabels": {"team": "platform"}},
}


@dataclass
class Watched:
    """The team's apps and what watches them.

    Attributes:
        healthy: objects of the apps that are healthy at first.
        broken: objects of the apps with a cause of an alert; only their rules and monitors exist.
        release: objects of the reaper's chart.
        exporter: metrics of the engine of `chat`.
        process: the reaper.
        fired: alerts that have fired, by app.
    """

    plane: Plane
    prometheus: Prometheus
    healthy: list[Object]
    broken: list[Object]
    release: list[Object]
    exporter: watched.Exporter
    process: subprocess.Popen[str]
    fired: dict[str, set[str]] = field(default_factory=dict)

    @property
    def dashboards(self) -> Mapping[str, Any]:
        """The dashboards by the name of their file."""
        maps = [each for each in self.healthy if each["metadata"]["name"].endswith("-dashboard")]
        return {name: json.loads(text) for each in maps for name, text in each["data"].items()}

    def active(self) -> set[tuple[str, str, str]]:
        """Return app, name and state of the alerts that are pending or firing."""
        found = self.prometheus.ask("alerts")["alerts"]
        return {(each["labels"]["app"], each["labels"]["alertname"], each["state"]) for each in found}

    def look(self) -> set[tuple[str, str]]:
        """Return the alerts that have fired so far, by app."""
        for app, name, state in self.active():
            if state == "firing":
                self.fired.setdefault(app, set()).add(name.removeprefix("Kaigen"))
        return {(app, name) for app, names in self.fired.items() for name in names}

    def until(self, expected: set[tuple[str, str]]) -> None:
        """Wait for alerts; the error has those that did not fire."""
        try:
            wait_until(lambda: self.look() >= expected, "the alerts fire", LONGEST, 0.5)
        except TimeoutError as error:
            error.add_note(f"did not fire: {sorted(expected - self.look())}; active: {sorted(self.active())}")
            raise

    def start(self, objects: list[Object]) -> None:
        """Create the objects of apps."""
        for body in objects:
            self.plane.client.apply(body, TEAM)

    def serve_as(self, namespace: str, labels: str, host: str) -> None:
        """Let Prometheus find a server of the test at the address of a pod."""
        client = self.plane.client
        found: list[Object] = []

        def ready() -> bool:
            pods = client.objects(POD, namespace, labels)
            found[:] = [pod for pod in pods if pod.get("status", {}).get("phase") == "Running"]
            return bool(found)

        wait_until(ready, f"a pod with {labels} runs")
        status = {"status": {"podIP": host, "podIPs": [{"ip": host}]}}
        client.patch(POD, found[0]["metadata"]["name"], namespace, status, "status")


@pytest.fixture(scope="module")
def team(plane: Plane, groups: GroupControllers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The apps and what watches them; of those with a cause, only the rules exist."""
    groups.start_leader_worker_set()
    groups.start_trainer()
    (port,) = free_ports(1)
    state = KubeStateMetrics(plane)
    prometheus = Prometheus(plane, port=port, interval="1s", further=[state.job])
    for name in (TEAM, TOOLS):
        plane.make_namespace(name)
    for prefix, course in watched.COURSES.items():
        name = "object.metadata.?name.orValue('') + object.metadata.?generateName.orValue('')"
        set_course(plane.client, TEAM, course, f"({name}).startsWith('{prefix}')")
    folder = tmp_path_factory.mktemp("watched")
    with ExitStack() as stack:
        hub = stack.enter_context(Hub())
        hub.add("model.safetensors", b"x" * 100_000)
        hub.faults.append(stall)
        stack.callback(ENDED.set)
        day = (datetime.now(UTC) + timedelta(days=2)).replace(hour=0, minute=0, second=0, microsecond=0)
        left = int((day - datetime.now(UTC)).total_seconds()) - EXPIRING
        parts = watched.specs(hub.url, day.strftime("%Y-%m-%d"), left)
        apps = compiled(folder / "specs", [*parts[0], *parts[1]], TEAM, "generic")
        healthy, broken = (
            [each.body for one in part for each in apps[one["metadata"]["name"]].objects] for part in parts
        )
        release = helm.template(reaper.CHART, reaper.ACCOUNT, TOOLS, REAPER_VALUES)
        for body in release:
            if body["kind"] != "Pod":
                plane.client.apply(body)
        (engine, *_) = ADDRESSES.values()
        exporter = watched.Exporter(engine, 8000)
        stack.callback(exporter.close)
        endpoint.Running(stack, locate_envoy(), tmp_path_factory.mktemp("endpoint"))
        (deployment,) = [each for each in release if each["kind"] == "Deployment"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        process = stack.enter_context(reaper.running(plane, TOOLS, folder / "account", *container["args"][1:]))
        found = Watched(plane, prometheus, healthy, broken, release, exporter, process)
        found.start([each for each in healthy if each["kind"] not in (RULE, MONITOR)])
        found.start([each for each in (*healthy, *broken) if each["kind"] in (RULE, MONITOR)])
        for labels, host in ADDRESSES.items():
            found.serve_as(TEAM, labels, host)
        found.serve_as(TOOLS, f"{INSTANCE}={reaper.ACCOUNT}", REAPER)
        every = [*healthy, *broken, *release]
        monitors, rules = (watched.namespaces_and_names(every, kind) for kind in (MONITOR, RULE))
        prometheus.scrape(monitors, rules, shorten)
        yield found


def stall(handler: Handler) -> bool:
    """Answer no request for a file before the tests end."""
    if handler.name == "cdn":
        ENDED.wait(2 * LONGEST)
    return handler.name == "cdn"


@pytest.mark.ran("PrometheusRule", by="prometheus-operator")
def test_no_alert_fires_while_every_app_is_healthy(team: Watched) -> None:
    """`pending` would be one, too: a cause that did not last."""
    jobs = {"kube-state-metrics", *(f"{TEAM}/{name}" for name in ("chat", "chat-router", "models"))}
    jobs.add(f"{TOOLS}/{reaper.ACCOUNT}")

    def scraped() -> bool:
        targets = team.prometheus.ask("targets?state=active")["activeTargets"]
        return {each["labels"]["job"] for each in targets if each["health"] == "up"} >= jobs and not team.active()

    wait_until(scraped, "Prometheus has scraped every app", LONGEST, 0.5)
    began = time.monotonic()
    while time.monotonic() - began < QUIET:
        assert team.active() == set()
        time.sleep(0.5)
    groups = team.prometheus.ask("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
    assert len(groups) == sum(each["kind"] == RULE for each in (*team.healthy, *team.broken, *team.release))


def test_every_panel_of_a_dashboard_has_data(team: Watched) -> None:
    lines = [line for shown in team.dashboards.values() for line in panels(shown)]
    assert len(lines) >= 25

    def empty() -> list[tuple[str, str]]:
        endpoint.ask({"model": "chat"}, "key-of-a")
        for _ in range(5):
            endpoint.ask({"model": "chat"}, "key-of-slow")
        return [line for line in lines if team.prometheus.value(line[1]) is None]

    try:
        wait_until(lambda: not empty(), "every panel has data", 60, 1)
    except TimeoutError as error:
        error.add_note(str(empty()))
        raise


def test_each_alert_fires_by_its_cause(team: Watched, tmp_path: Path) -> None:
    client = team.plane.client
    team.start([each for each in team.broken if each["kind"] not in (RULE, MONITOR)])
    watched.overload(team.exporter)
    # One more replica, which never becomes ready.
    for name in ("chat", "models"):
        where = f"object.metadata.?generateName.orValue('').startsWith('{name}-')"
        set_course(client, TEAM, watched.COURSES["unready"], where)
        replicas = client.get(DEPLOYMENT, name, TEAM)["spec"]["replicas"]
        client.patch(DEPLOYMENT, name, TEAM, {"spec": {"replicas": replicas + 1}})
    # The reaper may not delete what expires.
    for each in team.release:
        if each["kind"] == "RoleBinding" and each["metadata"]["namespace"] == TEAM:
            client.delete("rbac.authorization.k8s.io/v1/RoleBinding", each["metadata"]["name"], TEAM)
    client.create(reaper.job("expired", 1, pod_ttl="0"), TEAM)
    expected = {(app, name) for app, names in watched.EXPECTED.items() for name in names}
    last = {(app, name) for app, name in expected if name in ("ScheduleMissed", "ReaperDown")}
    with ExitStack() as stack:
        (download,) = [each for each in team.broken if each["kind"] == "Job" and "stalled" in each["metadata"]["name"]]
        (fetch,) = download["spec"]["template"]["spec"]["containers"]
        team.serve_as(TEAM, f"{INSTANCE}=stalled", STALLED)
        stack.enter_context(downloader.running(fetch, tmp_path))
        team.until(expected - last)
        # The controllers end: no run of a schedule starts.
        team.plane.processes.pause("kube-controller-manager")
        stack.callback(team.plane.processes.resume, "kube-controller-manager")
        team.process.kill()
        team.until(expected)
    assert team.look() == expected
    every = {f"{name[0].upper()}{name[1:]}" for name in alert_table()} | {"ReaperErrors", "ReaperDown"}
    assert {name for _, name in expected} == every


def test_every_metric_that_is_read_was_scraped(team: Watched) -> None:
    bodies = [*team.healthy, *team.broken, *team.release]
    rules = [rule for each in bodies if each["kind"] == RULE for rule in each["spec"]["groups"][0]["rules"]]
    read = {name for rule in rules for name in NAME.findall(rule["expr"])}
    read |= set(NAME.findall(json.dumps(team.dashboards)))
    assert len(read) > 25
    assert read - set(team.prometheus.ask("label/__name__/values")) == set()
