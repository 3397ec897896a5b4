"""A served model gets another name on a real node, with requests by its old name all along."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.apps import POD, client_pod, spec
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object
from tests.cluster.flux import Flux
from tests.cluster.git import Repository
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.team import Team
from tests.cluster.test_moves import ArgoMover, FluxMover, Mover
from tests.cluster.test_node_rollout import SERVER
from tests.cluster.traefik import CLASS, Traefik

SERVICE = "v1/Service"
INGRESS = "networking.k8s.io/v1/Ingress"
DEPLOYMENT = "apps/v1/Deployment"
ASK = """
import collections, json, os, threading, time, urllib.request
seen, lock = collections.Counter(), threading.Lock()
def ask(url, host):
    while not os.path.exists("/tmp/stop"):
        request = urllib.request.Request(url, headers={"Host": host} if host else {})
        try:
            answer = urllib.request.urlopen(request, timeout=20).read().decode()
        except OSError as error:
            answer = f"lost: {error}"
        with lock:
            seen[f"{'route' if host else 'service'} {answer}"] += 1
            if answer not in os.listdir("/tmp"):
                open(f"/tmp/{answer.replace('/', ' ')}", "w").close()
threads = [threading.Thread(target=ask, args=target) for target in TARGETS for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(seen))
"""


@pytest.fixture(scope="session")
def node_flux(node: Node) -> Iterator[Flux]:
    """Flux's controllers on the real node, with a Git server to publish to."""
    running = Flux(node)
    yield running
    running.close()


@pytest.fixture(params=["argocd", "flux"])
def mover(request: pytest.FixtureRequest, node: Node, repository: Repository, tmp_path: Path) -> Iterator[Mover]:
    running = request.getfixturevalue(f"node_{request.param}")
    team = Team(tmp_path / "team", repository.url, f"t{uuid.uuid4().hex[:6]}", {})
    found = (
        ArgoMover(node, team, running, repository) if isinstance(running, ArgoCD) else FluxMover(node, team, running)
    )
    yield found
    found.end()
    node.client.delete("v1/Namespace", team.space)


def served(name: str, version: str, **fields: object) -> Object:
    """Return a server that answers with its version, half a second after the request."""
    return spec(
        "Topology",
        name,
        engine="container",
        image=BASE,
        model={"folder": "/weights"},
        command=["python", "-c", SERVER],
        env={"VERSION": version},
        port=8000,
        probes={"ready": "/ready"},
        shape={"replicas": 2},
        drain="20s",
        resources={"cpu": "50m", "memory": "64Mi"},
        **fields,
    )


def start_client(node: Node, namespace: str, host: str) -> str:
    """Start a pod that asks the Service `web`, and the route by its host, until `/tmp/stop` exists."""
    targets = [("http://web/", ""), (f"http://{node.network.host}/", host)]
    pod = client_pod(f"TARGETS = {targets!r}\n{ASK}")
    name = str(node.client.create(pod, namespace)["metadata"]["name"])
    node.client.wait(POD, name, namespace, lambda found: found["status"]["phase"] == "Running", "running")
    return name


def has_answer(node: Node, namespace: str, client: str, version: str) -> bool:
    listed = node.run("kubectl", "exec", "-n", namespace, client, "--", "ls", "/tmp")
    return version in listed.stdout.split()


def test_no_request_is_lost_when_a_spec_becomes_an_alias_of_its_new_name(
    node: Node, traefik: Traefik, mover: Mover
) -> None:
    team, client = mover.team, node.client
    host = f"{team.environment}.test"
    route = {"host": host, "ingress": {"className": CLASS}}
    team.specs = {"web": served("web", "one", route=route)}
    mover.sync()
    objects = {kind: client.get(kind, "web", team.space)["metadata"]["uid"] for kind in (SERVICE, INGRESS)}
    asking = start_client(node, team.space, host)
    wait_until(lambda: has_answer(node, team.space, asking, "one"), "the old name is served")

    team.specs["site"] = served("site", "two")
    mover.sync()
    assert not has_answer(node, team.space, asking, "two")

    team.specs["web"] = spec("Alias", "web", topology="site", route=route)
    mover.sync()
    client.wait_gone(DEPLOYMENT, "web", team.space)
    old = "app.kubernetes.io/name=web"
    wait_until(lambda: not client.objects(POD, team.space, old), "the old pods are gone", 200)
    wait_until(lambda: has_answer(node, team.space, asking, "two"), "the new pods answer by the old name")

    node.run("kubectl", "exec", "-n", team.space, asking, "--", "touch", "/tmp/stop")
    client.wait(POD, asking, team.space, lambda found: found["status"]["phase"] == "Succeeded", "over")
    counted: dict[str, int] = json.loads(node.run("kubectl", "logs", "-n", team.space, asking).stdout)
    print(counted)
    assert counted.keys() == {"service one", "service two", "route one", "route two"}
    for kind, uid in objects.items():
        assert client.get(kind, "web", team.space)["metadata"]["uid"] == uid
