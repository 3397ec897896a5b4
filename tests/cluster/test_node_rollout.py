"""Rollouts and drains of a Topology on a real node, with requests in flight."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.apps import POD, asking_pod, compiled, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE
from tests.cluster.node import NAME, Node
from tests.cluster.processes import wait_until

DEPLOYMENT = "apps/v1/Deployment"
SERVER = """
import http.server, os, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/ready":
            time.sleep(0.5)
        self.send_response(200); self.end_headers()
        self.wfile.write(os.environ["VERSION"].encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""


def web(version: str, replicas: int) -> Object:
    return spec(
        "Topology",
        "web",
        engine="container",
        image=BASE,
        model={"folder": "/weights"},
        command=["python", "-c", SERVER],
        env={"VERSION": version},
        port=8000,
        probes={"ready": "/ready"},
        shape={"replicas": replicas},
        resources={"cpu": "50m", "memory": "64Mi"},
    )


def apply(node: Node, folder: Path, namespace: str, *specs: Object) -> None:
    for app in compiled(folder, specs, namespace, "generic").values():
        for rendered in app.objects:
            node.client.apply(rendered.body)


def ready_pods(node: Node, namespace: str, app: str = "web") -> list[Object]:
    pods = node.client.objects(POD, namespace, f"app.kubernetes.io/name={app}")
    return [pod for pod in pods if is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]]


def start_client(node: Node, namespace: str, seconds: int) -> str:
    """Start a pod that asks the Service in eight threads for some seconds; return its name."""
    pod = asking_pod(threads=8, seconds=seconds)
    return str(node.client.create(pod, namespace)["metadata"]["name"])


def answers(node: Node, namespace: str, client: str) -> dict[str, int]:
    """Wait for a client; return how often it got which answer."""
    node.client.wait(POD, client, namespace, lambda pod: pod["status"]["phase"] == "Succeeded", "over")
    counted: dict[str, int] = json.loads(node.run("kubectl", "logs", "--namespace", namespace, client).stdout)
    return counted


def is_rolled_out(deployment: Object) -> bool:
    status, replicas = deployment.get("status", {}), deployment["spec"]["replicas"]
    return bool(
        status.get("observedGeneration") == deployment["metadata"]["generation"]
        and status.get("updatedReplicas") == status.get("readyReplicas") == status.get("replicas") == replicas
    )


@pytest.fixture
def served(node: Node, node_namespace: str, tmp_path: Path) -> str:
    """A namespace in which two pods serve version `one`."""
    apply(node, tmp_path, node_namespace, web("one", replicas=2))
    node.client.wait(DEPLOYMENT, "web", node_namespace, is_rolled_out, "rolled out")
    return node_namespace


@pytest.mark.ran("Deployment", "Service", by="node")
def test_no_request_is_lost_in_a_rollout(node: Node, served: str, tmp_path: Path) -> None:
    client = start_client(node, served, 60)
    node.client.wait(POD, client, served, lambda pod: pod["status"]["phase"] == "Running", "running")
    apply(node, tmp_path, served, web("two", replicas=2))
    node.client.wait(DEPLOYMENT, "web", served, is_rolled_out, "rolled out")
    counted = answers(node, served, client)
    assert counted.keys() == {"one", "two"}


@pytest.mark.ran("PodDisruptionBudget", by="node")
def test_a_drain_leaves_a_pod_until_another_is_ready(node: Node, served: str) -> None:
    drain = ["drain", NAME, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=40s"]
    selector = ["--pod-selector", "app.kubernetes.io/name=web"]
    try:
        drained = node.run("kubectl", *drain, *selector, check=False)
        assert drained.returncode != 0
        assert "would violate the pod's disruption budget" in drained.stderr
        assert len(ready_pods(node, served)) == 1
    finally:
        node.run("kubectl", "uncordon", NAME)
    wait_until(lambda: len(ready_pods(node, served)) == 2, "both pods are ready again")
