"""Replicas on two pods on a real node: whichever pod is lost, the group serves again."""

from __future__ import annotations

import http.client
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.apps import POD, compiled, spec
from tests.cluster.client import Object
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.images import BASE, build_from
from tests.cluster.network import connect
from tests.cluster.node import Node
from tests.cluster.processes import wait_until

IMAGE = "kaigen.test/stand-in:1"
DRAIN = 120
ENGINE = '''#!/usr/bin/python3
"""Behaves like vLLM on two nodes: workers never notice a lost leader, and a leader stays healthy without its worker."""
import argparse, http.server, socket, sys, time
parser = argparse.ArgumentParser()
for name in ("--port", "--node-rank", "--nnodes", "--master-port"):
    parser.add_argument(name, type=int)
parser.add_argument("--master-addr")
parser.add_argument("--headless", action="store_true")
given, _ = parser.parse_known_args(sys.argv[2:])

def join():
    while True:
        try:
            return socket.create_connection((given.master_addr, given.master_port), 5)
        except OSError:
            time.sleep(0.5)

if given.headless:
    leader = join()
    leader.settimeout(None)
    while leader.recv(1):
        leader.sendall(b"!")
    time.sleep(3600)
worker, _ = socket.create_server(("", given.master_port)).accept()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/work":
            worker.sendall(b"?")
            if not worker.recv(1):
                time.sleep(3600)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"vllm:num_requests_running 0.0")
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("", given.port), Handler).serve_forever()
'''


@pytest.fixture(scope="module")
def engine(node: Node) -> str:
    """The name of an image with a stand-in for vLLM, which needs no GPU."""
    node.import_image(build_from(IMAGE, f"FROM {BASE}\nCOPY vllm /usr/local/bin/vllm\n", {"vllm": ENGINE.encode()}))
    return IMAGE


def groups_of_two(groups: str, image: str) -> Object:
    return spec(
        "Topology",
        "pair",
        model={"folder": "/weights"},
        image=image,
        engineVersion="0.32.0",
        shape={"nodes": 2, "pipelineParallel": 2, "groups": groups},
        resources={"gpus": 0, "cpu": "50m", "memory": "128Mi"},
        drain=f"{DRAIN}s",
    )


def works(node: Node, address: str) -> bool:
    """Whether a request that needs both pods is answered."""
    try:
        client = http.client.HTTPConnection(address, 80, timeout=5)
        client.sock = connect(node.network, (address, 80), 5)
        client.request("GET", "/work")
        return client.getresponse().status == 200
    except OSError:
        return False


def pods(node: Node, namespace: str) -> dict[str, Object]:
    """Return the group's pods by their component: `serve` for the leader, and `worker`."""
    found = node.client.objects(POD, namespace, "app.kubernetes.io/name=pair")
    return {pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in found}


def runs(node: Node, namespace: str) -> dict[str, Any]:
    """Return what identifies the running container of each pod."""
    return {
        component: status.get("containerID")
        for component, pod in pods(node, namespace).items()
        for status in pod["status"].get("containerStatuses", [])
    }


def kill(node: Node, namespace: str, component: str) -> None:
    container = runs(node, namespace)[component].removeprefix("containerd://")
    node.ctr("tasks", "kill", "--signal", "SIGKILL", container)


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param("leaderWorkerSet", marks=pytest.mark.ran("LeaderWorkerSet", by=("node", "lws"))),
        pytest.param("statefulSet", marks=pytest.mark.ran("StatefulSet", by="node")),
    ],
)
def test_a_group_serves_again_after_each_loss(
    node: Node, node_namespace: str, node_groups: GroupControllers, engine: str, tmp_path: Path, groups: str
) -> None:
    node_groups.start_leader_worker_set()
    (app,) = compiled(tmp_path, [groups_of_two(groups, engine)], node_namespace, "generic").values()
    for rendered in app.objects:
        node.client.apply(rendered.body)
    name = next(
        found.body["metadata"]["name"]
        for found in app.objects
        if found.body["kind"] == "Service" and found.body["spec"].get("clusterIP") != "None"
    )
    address = node.client.get("v1/Service", name, node_namespace)["spec"]["clusterIP"]
    wait_until(lambda: works(node, address), "the group serves", 300, every=0.5)
    for lost in ("worker", "serve"):
        before, started = runs(node, node_namespace), time.monotonic()
        kill(node, node_namespace, lost)

        def is_new(before: dict[str, Any] = before) -> bool:
            now = runs(node, node_namespace)
            return len(now) == 2 and not set(now.values()) & set(before.values())

        wait_until(is_new, f"both pods started again after {lost} was lost", 300, every=0.5)
        wait_until(lambda: works(node, address), "the group serves again", 300, every=0.5)
        print(f"{groups}: {lost} lost, serving again after {time.monotonic() - started:.0f} s")
    deleted, started = pods(node, node_namespace)["serve"]["metadata"], time.monotonic()
    node.client.delete(POD, deleted["name"], node_namespace)
    wait_until(
        lambda: (
            pods(node, node_namespace).get("serve", {}).get("metadata", {}).get("uid") not in {None, deleted["uid"]}
            and works(node, address)
        ),
        "the group serves after its leader was deleted",
        300,
        every=0.5,
    )
    # The leader has no requests to finish, and its worker does not wait longer than the leader.
    print(f"{groups}: leader deleted, serving again after {time.monotonic() - started:.0f} s")
