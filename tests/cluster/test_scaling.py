"""What a real Prometheus scrapes, and autoscalers that ran with its metrics and those of the kubelet."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from kaigen.pipeline.result import Compiled
from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cluster import prometheus as server
from tests.cluster.apps import JOB, compiled, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE, build_from, runtime_image
from tests.cluster.keda import Keda
from tests.cluster.metrics_server import MetricsServer
from tests.cluster.network import connect
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.prometheus import Prometheus
from tests.cluster.reaper import ACCOUNT, CHART, job
from tests.cluster.services import tiny_hub
from tests.cluster.test_node_rollout import ready_pods

pytestmark = pytest.mark.engine

DEPLOYMENT = "apps/v1/Deployment"
HPA = "autoscaling/v2/HorizontalPodAutoscaler"
SCALED_OBJECT = "keda.sh/v1alpha1/ScaledObject"
IMAGE = "kaigen.test/metrics:1"
TEAM, OTHER, WEIGHTS = "scaling", "scaling-other", "scaling-weights"
SCALERS = ("ScaledObject", "HorizontalPodAutoscaler")
LOGIN = "prometheus-login"
WAITING = "vllm:num_requests_waiting"
DEMAND = "gateway_requests"
ENGINE = '''#!/usr/bin/python3
"""Serves metrics whose values are posted to it, under vLLM's names, and uses as much of a CPU as is posted."""
import http.server, json, signal, sys, threading, time
values, lock = {"vllm:num_requests_waiting": 0}, threading.Lock()

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, text=""):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(text.encode())
    def do_GET(self):
        with lock:
            self.answer("".join(f'{name}{{engine="0"}} {value}\\n' for name, value in values.items()))
    def do_POST(self):
        with lock:
            values.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer()
    def log_message(self, *_): pass

def work():
    while True:
        started, share = time.process_time(), values.get("cpu", 0)
        while time.process_time() - started < share / 10:
            pass
        time.sleep((1 - share) / 10)

signal.signal(signal.SIGTERM, lambda *_: sys.exit())
threading.Thread(target=work, daemon=True).start()
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
'''


def topology(name: str, **fields: object) -> Object:
    whole: dict[str, Any] = {
        "model": {"folder": "/weights"},
        "image": IMAGE,
        "engineVersion": "0.32.0",
        "resources": {"gpus": 0, "cpu": "50m", "memory": "128Mi"},
        "probes": {"startup": "30s"},
        "monitoring": {},
    }
    return spec("Topology", name, **whole, **fields)


def autoscale(**fields: object) -> Object:
    return {"max": 2, "target": 2, "idleAfter": "10s", **fields}


def specs() -> Mapping[str, list[Object]]:
    """Return the specs of each namespace."""
    by_keda = {"address": server.URL, "triggerAuthentication": LOGIN, "authModes": ["basic"]}
    team = [
        topology("chat", auth={"secret": "key"}, autoscale=autoscale(max=3, prometheus=by_keda)),
        # Its pods are named like those of `chat`.
        topology("chat-7b", autoscale=autoscale()),
        topology("gated", autoscale=autoscale(min=0, query=f"sum({DEMAND})", prometheus=by_keda)),
        topology("busy", autoscale=autoscale(metric="cpu", target=80)),
    ]
    return {TEAM: team, OTHER: [topology("chat")]}


def login() -> list[Object]:
    """Return what KEDA knows of Prometheus, and the API key of `chat`."""

    def secret(name: str, **data: str) -> Object:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}

    targets = [{"parameter": key, "name": LOGIN, "key": key} for key in ("username", "password")]
    return [
        secret("key", **{"api-key": "not-a-secret"}),
        secret(LOGIN, username=server.USER, password=server.PASSWORD),
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "TriggerAuthentication",
            "metadata": {"name": LOGIN},
            "spec": {"secretTargetRef": targets},
        },
    ]


@pytest.fixture(scope="module")
def apps(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Compiled]]:
    """The apps of each namespace, which run without their scalers."""
    engine = {"vllm": ENGINE.encode()}
    node.import_image(build_from(IMAGE, f"FROM {BASE}\nCOPY vllm /usr/local/bin/vllm\n", engine))
    found = {}
    for namespace, team in specs().items():
        node.make_namespace(namespace)
        for each in login():
            node.client.create(each, namespace)
        found[namespace] = compiled(tmp_path_factory.mktemp(namespace), team, namespace, "generic")
        for app in found[namespace].values():
            for rendered in app.objects:
                if rendered.body["kind"] not in SCALERS:
                    node.client.apply(rendered.body)
    return found


@pytest.fixture(scope="module")
def hub(node: Node) -> Iterator[Hub]:
    """A Hub that sends 20 KB a second, so that its model takes 80 seconds."""
    serving = tiny_hub(node)
    serving.rate = 20_000
    yield serving
    serving.__exit__()


@pytest.fixture(scope="module")
def model(node: Node, hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """A Model whose download has not begun."""
    source = {"huggingFace": {"repo": REPO, "revision": COMMIT, "endpoint": hub.url}}
    volume = {"volume": {"size": "1Gi"}}
    tiny = spec("Model", "tiny", source=source, store=volume, monitoring={"interval": "1s"})
    app = compiled(tmp_path_factory.mktemp(WEIGHTS), [tiny], WEIGHTS, "generic")["tiny"]
    node.make_namespace(WEIGHTS)
    for rendered in app.objects:
        if rendered.body["kind"] != "Job":
            node.client.apply(rendered.body)
    return app


@pytest.fixture(scope="module")
def prometheus(node: Node, apps: Mapping[str, Mapping[str, Compiled]], model: Compiled) -> Prometheus:
    """Prometheus, configured from the PodMonitors of all apps."""
    started = Prometheus(node)
    node.import_image(runtime_image("reaper"))
    options = ["--namespace", TEAM, "--set", "podMonitor.enabled=true", "--wait", "--timeout", "3m"]
    node.run("helm", "install", ACCOUNT, str(CHART), *options)
    monitors = [f"{namespace}/{name}" for namespace, team in apps.items() for name in team]
    started.scrape([*monitors, f"{TEAM}/{ACCOUNT}", f"{WEIGHTS}/tiny"])
    return started


def one_pod(node: Node, namespace: str, name: str) -> Object:
    wait_until(lambda: len(ready_pods(node, namespace, name)) >= 1, f"{namespace}/{name} serves")
    return ready_pods(node, namespace, name)[0]


def post(node: Node, pod: Object, **values: float) -> None:
    """Set values of the metrics of a pod."""
    address = pod["status"]["podIP"]
    client = http.client.HTTPConnection(address, 8000, timeout=10)
    client.sock = connect(node.network, (address, 8000), 10)
    client.request("POST", "/", json.dumps(values))
    assert client.getresponse().status == 200
    client.close()


@pytest.mark.ran("PodMonitor", by=("node", "prometheus-operator"))
def test_prometheus_scrapes_the_pods_of_pod_monitors_and_no_others(
    node: Node, apps: Mapping[str, Mapping[str, Compiled]], prometheus: Prometheus
) -> None:
    pods = {
        (namespace, one_pod(node, namespace, name)["metadata"]["name"], "up", f"{namespace}/{name}")
        for namespace, team in [*apps.items(), (TEAM, [ACCOUNT])]
        for name in team
    }

    def scraped() -> set[tuple[str, ...]]:
        return {
            (each["labels"]["namespace"], each["labels"]["pod"], each["health"], each["labels"]["job"])
            for each in prometheus.ask("targets?state=active")["activeTargets"]
        }

    wait_until(lambda: scraped() == pods, "every pod is a target, and up")
    ended = job("ended", 1, pod_ttl="0")
    (container,) = ended["spec"]["template"]["spec"]["containers"]
    container.update(image=BASE, command=["true"])
    node.client.create(ended, TEAM)
    wait_until(
        lambda: prometheus.value('sum(kaigen_reaper_deleted_total{kind="pod"})') == 1,
        "the reaper's metrics count the pod that it deleted",
    )


@pytest.mark.ran("Job", by=("node", "downloader"))
def test_prometheus_has_the_progress_of_a_download(
    node: Node, hub: Hub, model: Compiled, prometheus: Prometheus
) -> None:
    (download,) = [each.body for each in model.objects if each.body["kind"] == "Job"]
    node.client.apply(download)
    of_fetch = f'{{namespace="{WEIGHTS}", action="fetch"}}'

    def speed() -> float:
        return prometheus.value(f"rate(kaigen_downloader_received_bytes_total{of_fetch}[10s])") or 0

    wait_until(lambda: speed() > 0, "the speed is known")
    size = sum(len(each.data) for each in hub.files.values())
    assert prometheus.value(f"kaigen_downloader_size_bytes{of_fetch}") == size
    assert 0 < (prometheus.value(f"kaigen_downloader_done_bytes{of_fetch}") or 0) < size
    hub.rate = 0
    node.client.wait(JOB, download["metadata"]["name"], WEIGHTS, partial(is_true, condition="Complete"), "done")


def reads(scaler: Object, value: str) -> bool:
    """Whether an autoscaler has read this average of its only metric."""
    (metric,) = scaler.get("status", {}).get("currentMetrics") or [{}]
    return any(
        each.get("current", {}).get("averageValue") == value for each in metric.values() if isinstance(each, dict)
    )


def apply_scaler(node: Node, app: Compiled) -> None:
    (scaler,) = [each.body for each in app.objects if each.body["kind"] in SCALERS]
    node.client.apply(scaler)


def wait_for(node: Node, name: str, replicas: int) -> None:
    """Wait until an app has this number of replicas, and all are ready."""

    def is_scaled(found: Object) -> bool:
        status = found["status"]
        counts = {status.get("replicas", 0), status.get("readyReplicas", 0), found["spec"]["replicas"]}
        return counts == {replicas}

    node.client.wait(DEPLOYMENT, name, TEAM, is_scaled, f"at {replicas} replicas")


@pytest.mark.ran("HorizontalPodAutoscaler", by=("node", "metrics-server", "kube-controller-manager"))
def test_replicas_follow_the_cpu_that_pods_use(node: Node, apps: Mapping[str, Mapping[str, Compiled]]) -> None:
    MetricsServer(node)
    pod = one_pod(node, TEAM, "busy")
    apply_scaler(node, apps[TEAM]["busy"])
    post(node, pod, cpu=0.2)
    wait_for(node, "busy", 2)
    post(node, pod, cpu=0)
    wait_for(node, "busy", 1)


@pytest.mark.ran("ScaledObject", by=("node", "keda-operator", "keda-adapter", "kube-controller-manager"))
@pytest.mark.ran("HorizontalPodAutoscaler", by=("node", "prometheus-adapter", "kube-controller-manager"))
def test_replicas_follow_the_requests_of_their_own_app(
    node: Node, apps: Mapping[str, Mapping[str, Compiled]], prometheus: Prometheus
) -> None:
    Keda(node)
    prometheus.serve_metrics()
    chat, alike = (one_pod(node, TEAM, name) for name in ("chat", "chat-7b"))
    other = one_pod(node, OTHER, "chat")
    for name in ("chat", "chat-7b", "gated"):
        apply_scaler(node, apps[TEAM][name])
    for name in ("chat", "gated"):
        node.client.wait(SCALED_OBJECT, name, TEAM, partial(is_true, condition="Ready"), "ready")

    # Apps whose pods are named alike are under load.
    for pod in (alike, other):
        post(node, pod, **{WAITING: 50})
    wait_until(lambda: prometheus.value(f'sum({WAITING}{{pod=~"chat-.*"}})') == 100, "both are under load")
    wait_for(node, "chat-7b", 2)
    node.client.wait(HPA, "keda-hpa-chat", TEAM, partial(reads, value="0"), "at no load")
    wait_for(node, "chat", 1)

    post(node, chat, **{WAITING: 5})
    wait_for(node, "chat", 3)
    wait_for(node, "gated", 0)
    post(node, other, **{DEMAND: 4})
    wait_for(node, "gated", 2)

    for pod in (chat, alike, other):
        post(node, pod, **{WAITING: 0, DEMAND: 0})
    for name, replicas in (("chat", 1), ("chat-7b", 1), ("gated", 0)):
        wait_for(node, name, replicas)
