"""Every alert, fired once by its cause in a real Prometheus, and the queries of every dashboard.

Real are Prometheus, the downloader with a Hub that stalls, the metrics server of the reaper, and Envoy with the
rendered Endpoint. The engine and kube-state-metrics have servers of their metrics in their place:
`tests/unit/catalog/test_metrics.py` compares the names of the first with those of vLLM, and a test here the names and
labels of the second with its documentation. A scrape configuration stands in for that of the operator, which
`tests/cluster/test_scaling.py` runs, and has the same labels.

The rules are those that are rendered. Only times are shorter: `for` and the windows of `rate` are divided by 60, so
that an hour is a minute.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
import yaml

from kaigen.compile.builders.alerts import alert_table
from kaigen.compile.builders.envoy import READY
from kaigen.compile.builders.weights import METRICS_PORT
from runtimes.downloader.tests.hub import COMMIT, REPO, Handler, Hub
from tests import helm
from tests.cluster import downloader, reaper, watched
from tests.cluster import test_endpoint as endpoint
from tests.cluster.apps import compiled, find, spec
from tests.cluster.client import Object
from tests.cluster.envoy import locate_envoy
from tests.cluster.processes import free_ports, wait_until
from tests.cluster.prometheus import program
from tests.cluster.tools.build import module_folder
from tests.cluster.tools.parts import KUBE_STATE_METRICS

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]
FASTER = 60
QUIET = 70
"""Seconds without an alert: longer than the longest `for`, which is an hour."""
LONGEST = 200
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
RULE, MONITOR = "PrometheusRule", "PodMonitor"
NAME = re.compile(r"\b(?:vllm:|kube_|kaigen_|envoy_|http_)[a-z0-9_]+(?=\{)")
NEVER = threading.Event()
REAPER_VALUES = {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}}


def shorter(rule: Object) -> Object:
    """Return a rule with `for` and the windows of `rate` divided."""

    def duration(number: str, unit: str) -> str:
        return f"{max(1, int(number) * UNITS[unit] // FASTER)}s"

    expression = re.sub(r"\[(\d+)([smhd])\]", lambda found: f"[{duration(*found.groups())}]", rule["expr"])
    return {**rule, "for": duration(rule["for"][:-1], rule["for"][-1]), "expr": expression}


def specs(hub: str, expires: str, above: int) -> list[Object]:
    """Return an app for each kind of object that alerts watch.

    Args:
        hub: URL of a Hub.
        expires: day on which the token of `chat` expires.
        above: seconds before it at which the alert begins.
    """
    source = {"huggingFace": {"repo": REPO, "revision": COMMIT, "endpoint": hub}}
    engine = {"model": {"folder": "/weights"}, "engineVersion": "0.32.0", "resources": {"gpus": 1}}
    alerts = {"alerts": {"rules": {"jobStuck": {"above": 3600}}}}
    job = {"image": "registry.example.com/work:1", "monitoring": alerts}
    chat = {
        "alerts": {"expires": {"hf-token": expires}, "rules": {"tokenExpiring": {"above": above}}},
        "slo": {"availability": "99.9%", "ttft": {"p95": "1500ms"}},
        "dashboard": {},
    }
    shape = {"nodes": 2, "pipelineParallel": 2, "groups": "leaderWorkerSet"}
    return [
        spec("Topology", "chat", **engine, shape={"replicas": 2}, router={}, monitoring=chat),
        spec("Topology", "pair", **engine | {"shape": shape, "monitoring": {"alerts": {}}}),
        spec("Endpoint", "models", models=["chat"], clients={"a": {"models": ["*"]}}, monitoring={"dashboard": {}}),
        spec("Model", "weights", source=source, store={"volume": {"size": "1Gi"}}, monitoring=alerts),
        spec("Notebook", "lab", monitoring={"alerts": {}}),
        spec("Job", "once", **job),
        spec("Job", "nightly", **job, schedule="0 2 * * *"),
        spec("Job", "several", **job, nodes=2, groups="jobSet"),
    ]


@dataclass
class Watched:
    """Prometheus and what it scrapes.

    Attributes:
        port: of Prometheus.
        rules: the rules, as they are rendered.
        dashboards: the dashboards by the name of their app.
        jobs: names of the Jobs by app.
        fetch: the container of the downloader.
        engine: metrics of the engine.
        cluster: metrics of kube-state-metrics.
        reaper: the metrics of the reaper.
        fired: places of the rules that have fired.
    """

    port: int
    rules: list[Object]
    dashboards: Mapping[str, Any]
    jobs: Mapping[str, str]
    fetch: Object
    engine: watched.Exporter
    cluster: watched.Exporter
    reaper: Any
    fired: set[int] = field(default_factory=set)

    def ask(self, path: str) -> Any:
        """Return the data of an answer of Prometheus."""
        with urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=30) as answer:
            return json.load(answer)["data"]

    def active(self) -> set[tuple[str, str, str]]:
        """Return name, app and state of the alerts that are pending or firing."""
        found = self.ask("alerts")["alerts"]
        return {(each["labels"]["alertname"], each["labels"]["app"], each["state"]) for each in found}

    def has_fired(self) -> set[int]:
        """Return the places of the rules that have fired so far."""
        (group,) = self.ask("rules")["groups"]
        self.fired |= {place for place, rule in enumerate(group["rules"]) if rule["state"] == "firing"}
        return self.fired

    def healthy(self) -> dict[str, float]:
        """Return what kube-state-metrics says of healthy apps: nothing runs too long, and nothing failed."""
        now = time.time()
        found = watched.replicas("Deployment", "chat-router", 2, 2) | watched.replicas("Deployment", "chat", 2, 2)
        found |= watched.replicas("StatefulSet", "lab", 1, 1)
        found |= watched.replicas("StatefulSet", "pair", 1, 1)
        for app, name in self.jobs.items():
            found |= watched.run(name, active=1, since=now)
            found |= watched.gate(f"{name}-{'0-' if app == 'several' else ''}x2x4z", "wait-for-model", 0)
        found |= watched.run("nightly-29384720", owner="nightly", active=1, since=now)
        found[watched.series("kube_cronjob_next_schedule_time", cronjob="nightly")] = now + 3600
        deployed = ("chat-7d9f8b6c5d-x2x4z", "chat-router-7d9f8b6c5d-x2x4z")
        pods = (*deployed, "lab-0", "pair-0", "pair-0-1", "nightly-29384720-x2x4z")
        for pod in pods:
            found |= watched.gate(pod, "wait-for-model", 0)
        return found

    def broken(self) -> dict[str, float]:
        """Return the same of apps that have every cause."""
        long_ago = time.time() - 7200
        found = watched.replicas("Deployment", "chat-router", 2, 1) | watched.replicas("Deployment", "chat", 2, 1)
        found |= watched.replicas("StatefulSet", "lab", 1, 0)
        found |= watched.replicas("StatefulSet", "pair", 1, 0)
        for name in self.jobs.values():
            found |= watched.run(name, active=1, failed=1, since=long_ago)
        found |= watched.run("nightly-29384720", owner="nightly", active=1, failed=1, since=long_ago)
        found[watched.series("kube_cronjob_next_schedule_time", cronjob="nightly")] = long_ago
        return found | {name: 1.0 for name in self.healthy() if name.startswith("kube_pod_init")}


def stall(handler: Handler) -> bool:
    """Answer no request for a file."""
    if handler.name == "cdn":
        NEVER.wait(2 * LONGEST)
    return handler.name == "cdn"


def scrape_jobs(monitors: list[Object], ports: Mapping[str, int]) -> list[Object]:
    """Return a scrape configuration of PodMonitors, with the labels that the operator gives."""
    found = []
    for body in monitors:
        name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "ml")
        for number, each in enumerate(body["spec"]["podMetricsEndpoints"]):
            port = ports.get(f"{name}/{each['port']}")
            if port is not None:
                labels = {"job": f"{namespace}/{name}", "namespace": namespace, "pod": f"{name}-0"}
                targets = [{"targets": [f"127.0.0.1:{port}"], "labels": labels}]
                path = each.get("path", "/metrics")
                found.append({"job_name": f"{name}/{number}", "metrics_path": path, "static_configs": targets})
    return found


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The apps, healthy, and Prometheus with their rules."""
    folder = tmp_path_factory.mktemp("watched")
    with ExitStack() as stack:
        hub = stack.enter_context(Hub())
        hub.add("model.safetensors", b"x" * 100_000)
        hub.faults.append(stall)
        stack.callback(NEVER.set)
        day = (datetime.now(UTC) + timedelta(days=2)).replace(hour=0, minute=0, second=0, microsecond=0)
        above = int((day - datetime.now(UTC)).total_seconds()) - 2 * QUIET
        apps = compiled(folder / "specs", specs(hub.url, day.strftime("%Y-%m-%d"), above), "ml", "generic")
        bodies = [each.body for app in apps.values() for each in app.objects]
        bodies += helm.template(reaper.CHART, reaper.ACCOUNT, "tools", REAPER_VALUES)
        rules = [rule for each in bodies if each["kind"] == RULE for rule in each["spec"]["groups"][0]["rules"]]
        jobs = {name: find(apps[name], "Job")["metadata"]["name"] for name in ("once", "weights")}
        jobs["several"] = f"{find(apps['several'], 'JobSet')['metadata']['name']}-node-0"
        (fetch,) = find(apps["weights"], "Job")["spec"]["template"]["spec"]["containers"]
        dashboards = {
            name: json.loads(text)
            for each in bodies
            if each["kind"] == "ConfigMap" and each["metadata"]["name"].endswith("-dashboard")
            for name, text in each["data"].items()
        }
        sys.path.insert(0, str(ROOT / "runtimes" / "reaper"))
        stack.callback(sys.path.remove, str(ROOT / "runtimes" / "reaper"))
        from kaigen_reaper.metrics import Metrics, serve  # type: ignore[import-not-found, unused-ignore]

        metrics = Metrics()
        metrics.set("leader", 1)
        engine, cluster = watched.engine(), watched.Exporter({})
        for exporter in (engine, cluster):
            stack.callback(exporter.close)
        (port, reaping) = (*free_ports(1), serve(metrics, 0, lambda: None, "127.0.0.1"))
        endpoint.Running(stack, locate_envoy(), tmp_path_factory.mktemp("endpoint"))
        ports = {
            **dict.fromkeys(("chat/http", "pair/http"), engine.port),
            # Both are Envoy: the names of its metrics are the same.
            **dict.fromkeys(("models/envoy-metrics", "chat-router/envoy-metrics"), READY),
            "weights/metrics": METRICS_PORT,
            f"{reaper.ACCOUNT}/metrics": reaping,
        }
        monitors = [each for each in bodies if each["kind"] == MONITOR]
        state = [{"targets": [f"127.0.0.1:{cluster.port}"]}]
        scraped = [*scrape_jobs(monitors, ports), {"job_name": "ksm", "honor_labels": True, "static_configs": state}]
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": scraped,
        }
        groups = [{"name": "rules", "rules": [shorter(rule) for rule in rules]}]
        (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        found = Watched(port, rules, dashboards, jobs, fetch, engine, cluster, metrics)
        cluster.set(found.healthy())
        command = [program("prometheus")]
        command += [f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}"]
        log = stack.enter_context((folder / "log").open("wb"))
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        stack.callback(process.wait)
        stack.callback(process.kill)
        wait_until(lambda: ready(found), "Prometheus answers", LONGEST)
        yield found


def ready(team: Watched) -> bool:
    """Return whether Prometheus answers."""
    try:
        return bool(team.ask("status/buildinfo"))
    except OSError:
        return False


def test_no_alert_fires_while_every_app_is_healthy(team: Watched) -> None:
    """`pending` would be one, too: a cause that did not last."""
    ups = 'count(up{job=~"ml/(chat|pair|models|chat-router)|tools/.+|ksm"} == 1)'
    wait_until(lambda: value(team, ups) == 6 and not team.active(), "Prometheus has scraped every app", LONGEST, 0.5)
    began = time.monotonic()
    while time.monotonic() - began < QUIET:
        assert team.active() == set()
        time.sleep(0.5)
    (group,) = team.ask("rules")["groups"]
    assert len(group["rules"]) == len(team.rules)
    assert {rule["health"] for rule in group["rules"]} == {"ok"}


def value(team: Watched, query: str) -> float | None:
    """Return the only value of a query; None without one."""
    found = team.ask(f"query?query={quote(query)}")["result"]
    return float(found[0]["value"][1]) if found else None


def test_each_alert_fires_by_its_cause(team: Watched, tmp_path: Path) -> None:
    watched.overload(team.engine)
    team.cluster.set(team.broken())
    stop = threading.Event()

    def fail() -> None:
        while not stop.wait(1):
            team.reaper.add("errors_total", what="delete")

    threading.Thread(target=fail, daemon=True).start()
    last = {place for place, rule in enumerate(team.rules) if rule["alert"] == "KaigenReaperDown"}
    every = set(range(len(team.rules)))
    with downloader.running(team.fetch, tmp_path):
        wait_for(team, every - last)
        stop.set()
        team.reaper.set("leader", 0)
        wait_for(team, every)
    names = {f"Kaigen{name[0].upper()}{name[1:]}" for name in alert_table()}
    assert {rule["alert"] for rule in team.rules} == names | {"KaigenReaperErrors", "KaigenReaperDown"}
    assert len(every) >= 34


def wait_for(team: Watched, wanted: set[int]) -> None:
    """Wait until rules have fired; the error has those that have not."""
    try:
        wait_until(lambda: team.has_fired() >= wanted, "the alerts fire", LONGEST, 0.5)
    except Exception as error:
        error.add_note(f"did not fire: {[team.rules[place] for place in sorted(wanted - team.fired)]}")
        raise


def test_every_panel_of_a_dashboard_has_data(team: Watched) -> None:
    endpoint.ask({"model": "chat"}, "key-of-a")
    for _ in range(5):
        endpoint.ask({"model": "chat"}, "key-of-slow")
    lines = [
        (name, panel["title"], target["expr"].replace("$__rate_interval", "5m"))
        for name, shown in team.dashboards.items()
        for panel in shown["panels"]
        for target in panel["targets"]
    ]
    assert len(lines) >= 25

    def empty() -> list[tuple[str, str, str]]:
        return [line for line in lines if value(team, line[2]) is None]

    try:
        wait_until(lambda: not empty(), "every panel has data", 30, 1)
    except TimeoutError as error:
        error.add_note(str(empty()))
        raise


def test_every_metric_is_one_that_was_scraped(team: Watched) -> None:
    """Those of the downloader and the reaper come with a cause; `test_metrics.py` of the catalogue has their names."""
    endpoint.ask({"model": "chat"}, "key-of-a")
    read = {name for rule in team.rules for name in NAME.findall(rule["expr"])}
    read |= set(NAME.findall(json.dumps(team.dashboards)))
    others = {name for name in read if not name.startswith("kaigen_")}
    assert len(others) > 20
    wait_until(lambda: others <= set(team.ask("label/__name__/values")), "every metric is scraped", 30, 1)


def test_kube_state_metrics_documents_every_metric_with_its_labels(team: Watched) -> None:
    docs = module_folder(KUBE_STATE_METRICS, KUBE_STATE_METRICS.module) / "docs" / "metrics"
    rows = {
        row[1]: set(re.findall(r"`([a-z_]+)`(?==|;|:|\s|$)", row[0])) | set(re.findall(r"`([a-z_]+)`=", row[0]))
        for path in docs.rglob("*.md")
        for row in re.findall(r"(?m)^(\| *(kube_[a-z_]+) *\|.*)$", path.read_text())
    }
    exported = re.findall(r"(?m)^(kube_[a-z_]+)\{(.*)\}", team.cluster.text())
    assert len(exported) > 20
    for name, labels in exported:
        assert name in rows
        assert set(re.findall(r'([a-z_]+)="', labels)) <= rows[name], name
    read = {name for rule in team.rules for name in NAME.findall(rule["expr"]) if name.startswith("kube_")}
    assert read == {name for name, _ in exported}
