"""Two versions of a served model on a real node: weights, promotion and rollback, with requests all along."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.rollouts import plan_finish, plan_weight
from tests.cluster.apps import POD
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object
from tests.cluster.flux import GIT_REPOSITORY, KUSTOMIZATION, Flux
from tests.cluster.git import Repository
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.team import Team
from tests.cluster.test_moves import ArgoMover, FluxMover, Mover
from tests.cluster.test_node import run_client
from tests.cluster.test_node_rename import DEPLOYMENT, has_answer, node_flux, served, start_client
from tests.cluster.traefik import CLASS, Traefik

pytestmark = pytest.mark.engine

__all__ = ["node_flux"]

M = TypeVar("M", bound=Mover)
ROUTE = "gateway.networking.k8s.io/v1/HTTPRoute"
SLOW = """
import http.server, os, time
time.sleep(15)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(os.environ["VERSION"].encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""
COUNT = """
import collections, json, urllib.request
def ask(_):
    request = urllib.request.Request(URL, headers={"Host": HOST})
    try:
        return urllib.request.urlopen(request, timeout=20).read().decode()
    except OSError as error:
        return f"lost: {error}"
from concurrent.futures import ThreadPoolExecutor
print(json.dumps(collections.Counter(ThreadPoolExecutor(4).map(ask, range(200)))))
"""


@pytest.fixture(params=["argocd", "flux"])
def mover(request: pytest.FixtureRequest, node: Node, repository: Repository, tmp_path: Path) -> Iterator[Mover]:
    running = request.getfixturevalue(f"node_{request.param}")
    team = Team(tmp_path / "team", repository.url, f"v{uuid.uuid4().hex[:6]}", {})
    yield from ended(
        ArgoMover(node, team, running, repository) if isinstance(running, ArgoCD) else FluxMover(node, team, running)
    )


@pytest.fixture
def flux_mover(node: Node, node_flux: Flux, tmp_path: Path) -> Iterator[FluxMover]:
    yield from ended(FluxMover(node, Team(tmp_path / "team", "", f"v{uuid.uuid4().hex[:6]}", {}), node_flux))


def ended(mover: M) -> Iterator[M]:
    """Yield a mover, then remove what it synced."""
    yield mover
    mover.end()
    mover.plane.client.delete("v1/Namespace", mover.team.space)


def with_canary(first: Object) -> Object:
    """Return a Topology with a canary that needs 15 seconds to start, and gets requests."""
    canary: Object = {
        "pool": "two",
        "weight": 10,
        "replicas": 1,
        "env": {"VERSION": "two"},
        "command": ["python", "-c", SLOW],
    }
    return {**first, "spec": {**first["spec"], "canary": canary}}


def promote(mover: Mover, weight: int | None) -> None:
    """Change the weight as `kaigen promote` does, or finish, and sync the commit."""
    team = mover.team
    team.write()
    config = load_config(team.folder, team.environment)
    change = plan_finish(config, "web") if weight is None else plan_weight(config, "web", weight)
    team.specs = {"web": yaml.safe_load(change.file.new)}
    mover.sync()


def over_the_route(node: Node, namespace: str, host: str) -> Counter[str]:
    """Return how often each version answered 200 requests."""
    code = f"URL = 'http://{node.network.host}/'\nHOST = {host!r}\n{COUNT}"
    return Counter(json.loads(run_client(node, namespace, code)))


def pods(node: Node, namespace: str, app: str) -> set[str]:
    """Return the identities of the pods of an app that serve."""
    found = node.client.objects(POD, namespace, f"app.kubernetes.io/name={app},app.kubernetes.io/component=serve")
    return {str(pod["metadata"]["uid"]) for pod in found if "deletionTimestamp" not in pod["metadata"]}


def weights(node: Node, namespace: str) -> dict[str, int]:
    """Return the weights of the route in the cluster."""
    (rule,) = node.client.get(ROUTE, "web", namespace)["spec"]["rules"]
    return {each["name"]: each["weight"] for each in rule["backendRefs"]}


def begin(node: Node, mover: Mover) -> tuple[Object, str]:
    """Serve the first version at a route; return its spec, and the client that asks until it is stopped."""
    team = mover.team
    host = f"{team.environment}.test"
    first = served("web", "one", route={"host": host, "gateway": {"className": CLASS}})
    team.specs = {"web": first}
    mover.sync()
    asking = start_client(node, team.space, host)
    wait_until(lambda: has_answer(node, team.space, asking, "one"), "the first version is served")
    return first, asking


def stop(node: Node, namespace: str, client: str) -> dict[str, int]:
    """Stop a client; return how often it got which answer."""
    node.run("kubectl", "exec", "-n", namespace, client, "--", "touch", "/tmp/stop")
    node.client.wait(POD, client, namespace, lambda found: found["status"]["phase"] == "Succeeded", "over")
    counted: dict[str, int] = json.loads(node.run("kubectl", "logs", "-n", namespace, client).stdout)
    return counted


@pytest.mark.ran("HTTPRoute", by=("node", "traefik"))
def test_no_request_is_lost_from_the_first_to_the_last_weight_and_back(
    node: Node, traefik: Traefik, mover: Mover
) -> None:
    team, client = mover.team, node.client
    host = f"{team.environment}.test"
    first, asking = begin(node, mover)

    # The pods need 15 seconds, and the commit gives them requests at once.
    team.specs = {"web": with_canary(first)}
    mover.sync()
    assert weights(node, team.space) == {"web": 90, "web-two": 10}
    found = over_the_route(node, team.space, host)
    print(found)
    assert found.keys() == {"one", "two"}
    # Three times the root of 200 * 0.1 * 0.9.
    assert abs(found["two"] - 20) <= 12.7, found
    serving = pods(node, team.space, "web-two")

    promote(mover, 100)
    wait_until(lambda: over_the_route(node, team.space, host).keys() == {"two"}, "the canary answers everything")
    before = dict(team.specs)
    assert pods(node, team.space, "web")

    promote(mover, None)
    client.wait_gone(DEPLOYMENT, "web", team.space)
    assert serving <= pods(node, team.space, "web-two")
    assert over_the_route(node, team.space, host).keys() == {"two"}

    # Back, by the reverse commits.
    team.specs = before
    mover.sync()
    client.wait(DEPLOYMENT, "web", team.space, lambda each: each["status"].get("readyReplicas") == 2, "ready", 120)
    promote(mover, 0)
    wait_until(lambda: over_the_route(node, team.space, host).keys() == {"one"}, "the first version answers")
    team.specs = {"web": first}
    mover.sync()
    client.wait_gone(DEPLOYMENT, "web-two", team.space)

    counted = stop(node, team.space, asking)
    print(counted)
    assert counted.keys() == {"service one", "service two", "route one", "route two"}


@pytest.mark.ran("HTTPRoute", "Kustomization", by=("node", "traefik", "kustomize-controller"))
def test_flux_applies_no_weight_before_it_knows_that_the_route_waits_for_the_canary(
    node: Node, traefik: Traefik, flux_mover: FluxMover
) -> None:
    client, mover, team, node_flux = node.client, flux_mover, flux_mover.team, flux_mover.flux
    first, asking = begin(node, mover)

    # The Kustomization of the app gets the commit long before the one that changes its `dependsOn`.
    client.patch(KUSTOMIZATION, mover.source, node_flux.namespace, {"spec": {"suspend": True}})
    team.specs = {"web": with_canary(first)}
    revision = node_flux.commit(team.environment, team.files())
    node_flux.fetch(GIT_REPOSITORY, mover.source)
    node_flux.wait_ready(f"{mover.source}-tenants", revision, 120)
    node_flux.fetch(GIT_REPOSITORY, mover.source, team.space)
    app = team.name(team.space, "web")

    def is_tried() -> bool:
        status = client.get(KUSTOMIZATION, app, team.space)["status"]
        refused = any("_flux/after" in each.get("message", "") for each in status["conditions"])
        return status["lastAttemptedRevision"] == revision and (refused or len(weights(node, team.space)) == 2)

    wait_until(is_tried, "the commit reaches the Kustomization of the app", 60)
    client.patch(KUSTOMIZATION, mover.source, node_flux.namespace, {"spec": {"suspend": False}})
    mover.sync()
    assert weights(node, team.space) == {"web": 90, "web-two": 10}
    wait_until(lambda: has_answer(node, team.space, asking, "two"), "the canary answers")
    counted = stop(node, team.space, asking)
    print(counted)
    assert counted.keys() == {"service one", "route one", "route two"}
