"""A whole chain on a real node: a model is downloaded, a Job tunes it, and what the Job wrote is served to a client."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
from functools import partial
from pathlib import Path

import pytest

from kaigen.pipeline.result import Compiled
from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cluster.apps import JOB, POD, compiled, job_name, spec
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object, is_true
from tests.cluster.git import Repository
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.team import ARGOCD, Team, bootstrap_argocd, remove_applications, wait_application
from tests.cluster.test_node import WEIGHTS, install
from tests.cluster.traefik import CLASS, Traefik

DEPLOYMENT = "apps/v1/Deployment"
FACTOR = 3
TUNED = hashlib.sha256(WEIGHTS * FACTOR).hexdigest()
"""Checksum of the weights that the Job writes."""

TUNE = """
import json, pathlib
params = json.load(open("/etc/kaigen/params.json"))
weights = pathlib.Path("/model/model.safetensors").read_bytes()
draft = pathlib.Path("/output/draft")
draft.mkdir()
(draft / "config.json").write_bytes(pathlib.Path("/model/config.json").read_bytes())
(draft / "model.safetensors").write_bytes(weights * params["factor"])
draft.rename("/output/merged")
print("tuned")
"""
ASK = """
import hashlib, time, urllib.request
for attempt in range(600):
    try:
        answer = urllib.request.urlopen("http://tuned/model.safetensors", timeout=30).read()
        break
    except OSError as error:
        print(error, flush=True)
        time.sleep(0.5)
print(hashlib.sha256(answer).hexdigest())
"""
SERVE = """
import runpy, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
sys.argv[1:] = ["8000", "--directory", "/model"]
runpy.run_module("http.server", run_name="__main__")
"""
RUN = """
import os, signal, time
run = int(os.environ["RUN"])
end = time.time() + (600 if run == 1 else 2)
def stop(*_):
    global end
    end = time.time() + 3
signal.signal(signal.SIGTERM, stop)
with open("/output/log", "a") as log:
    while time.time() < end:
        print(run, file=log, flush=True)
        time.sleep(0.1)
print(open("/output/log").read())
"""
SMALL = {"cpu": "50m", "memory": "128Mi"}


def chain(hub: Hub, route: Object | None = None) -> dict[str, Object]:
    """Return the specs of the chain by name.

    Args:
        hub: where the model is.
        route: how requests from outside reach the service.
    """
    source = {"repo": REPO, "revision": COMMIT, "endpoint": hub.url}
    serving = {"engine": "container", "image": BASE, "model": {"job": {"name": "tune", "path": "merged"}}}
    if route:
        serving["route"] = route
    specs = [
        spec("Model", "tiny", source={"huggingFace": source}, store={"volume": {"size": "1Gi"}}),
        spec(
            "Job",
            "tune",
            image=BASE,
            model="tiny",
            command=["python", "-c", TUNE],
            params={"factor": FACTOR},
            output={"volume": {"size": "1Gi"}},
            resources=SMALL,
        ),
        spec(
            "Topology",
            "tuned",
            command=["python", "-c", SERVE],
            probes={"ready": "/config.json"},
            resources=SMALL,
            **serving,
        ),
        spec("Job", "ask", image=BASE, command=["python", "-c", ASK], resources=SMALL),
    ]
    return {found["metadata"]["name"]: found for found in specs}


def wait_complete(node: Node, namespace: str, app: Compiled) -> str:
    """Wait until the Job of an app is complete; return the last line of its log."""
    name = job_name(app)
    node.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete")
    printed = node.run("kubectl", "logs", "--namespace", namespace, f"job/{name}").stdout
    return printed.strip().rpartition("\n")[2]


def get(node: Node, host: str, path: str) -> tuple[int, bytes]:
    """Send a request for a host to the node's address; return status and body."""
    connection = http.client.HTTPConnection(node.network.host, timeout=30)
    with node.network.entered():
        connection.connect()
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read()


def is_ready(deployment: Object) -> bool:
    return bool(deployment.get("status", {}).get("readyReplicas") == 1)


@pytest.mark.ran("ServiceAccount", "Role", "RoleBinding", by=("node", "downloader"))
@pytest.mark.ran("PersistentVolumeClaim", "ConfigMap", "Job", "Deployment", "Service", by="node")
@pytest.mark.parametrize(
    ("form", "route"),
    [
        pytest.param(
            "manifests", {"ingress": {"className": CLASS}}, marks=pytest.mark.ran("Ingress", by=("node", "traefik"))
        ),
        pytest.param(
            "chart",
            {"gateway": {"className": CLASS}},
            marks=pytest.mark.ran("Pod", "Gateway", "HTTPRoute", by=("node", "traefik")),
        ),
    ],
    ids=["manifests", "chart"],
)
def test_a_tuned_model_is_served(
    node: Node, traefik: Traefik, node_namespace: str, hub: Hub, tmp_path: Path, form: str, route: Object
) -> None:
    host = f"{node_namespace[-6:]}.test"
    specs = chain(hub, {"host": host, **route})
    apps = compiled(tmp_path / "specs", list(specs.values()), node_namespace, "generic")
    # In the wrong order: the service waits for the Job, and the Job for its model.
    for name in ("ask", "tuned", "tune", "tiny"):
        install(node, {name: apps[name]}, form, tmp_path / "charts")
    assert wait_complete(node, node_namespace, apps["tune"]) == "tuned"
    assert wait_complete(node, node_namespace, apps["ask"]) == TUNED
    wait_until(lambda: get(node, host, "/model.safetensors")[0] == 200, "the route leads to the service", 60)
    assert hashlib.sha256(get(node, host, "/model.safetensors")[1]).hexdigest() == TUNED
    if form == "chart":
        for name in apps:
            node.run("helm", "test", name, "--namespace", node_namespace, "--timeout", "120s")


def gate_of(node: Node, namespace: str) -> Object:
    """Return the status of the container that waits for the Job; empty as long as it has none."""
    pods = node.client.objects(POD, namespace, "app.kubernetes.io/name=tuned")
    statuses = [each for pod in pods for each in pod["status"].get("initContainerStatuses", [])]
    return dict(statuses[0]["state"]) if statuses else {}


@pytest.mark.ran("Job", "Deployment", "Service", "ConfigMap", by=("node", "argocd"))
@pytest.mark.ran("ServiceAccount", "Role", "RoleBinding", by=("node", "argocd", "downloader"))
@pytest.mark.ran("ApplicationSet", "AppProject", by=("node", "argocd"))
def test_argocd_runs_the_chain_of_one_commit_in_the_order_of_its_gates(
    node: Node, node_argocd: ArgoCD, node_namespace: str, hub: Hub, tmp_path: Path
) -> None:
    # An ApplicationSet has no order between apps.
    node_argocd.start_application_sets()
    gitops = {"argocd": {"namespace": "argocd", "applications": "set"}}
    repository = Repository(tmp_path / "repository")
    specs = chain(hub)
    team = Team(tmp_path / "team", repository.url, node_namespace[-6:], gitops, specs, node_namespace)
    files = team.files()
    hub.rate = 16 * 1024
    revision = repository.commit(files)
    bootstrap_argocd(node, team, files)
    try:
        wait_until(lambda: "running" in gate_of(node, team.space), "the service waits for the Job", 120)
        hub.rate = None
        for name in specs:
            wait_application(node, node_argocd, team.name(team.space, name), revision)
        jobs = {found["metadata"]["name"].rpartition("-")[0]: found for found in jobs_of(node, team.space)}
        assert all(is_true(found, condition="Complete") for found in jobs.values())
        gate, completed = gate_of(node, team.space)["terminated"], jobs["tune"]["status"]["completionTime"]
        assert gate["startedAt"] < completed <= gate["finishedAt"]
        name = jobs["ask"]["metadata"]["name"]
        printed = node.run("kubectl", "logs", "--namespace", team.space, f"job/{name}").stdout
        assert printed.strip().endswith(TUNED)
    finally:
        remove_applications(node, node_argocd, team.environment)


def run_spec(number: int) -> dict[str, Object]:
    """Return a Job that appends its number to a file of its output, also for some seconds after SIGTERM."""
    fields = {"env": {"RUN": str(number)}, "output": {"volume": {"size": "1Gi"}}, "resources": SMALL}
    return {"run": spec("Job", "run", image=BASE, command=["python", "-c", RUN], **fields)}


@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "argocd"))
def test_a_changed_run_starts_after_the_old_one_has_ended(
    node: Node, node_argocd: ArgoCD, node_namespace: str, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "repository")
    team = Team(tmp_path / "team", repository.url, node_namespace[-6:], ARGOCD, run_spec(1), node_namespace)
    files = team.files()
    repository.commit(files)
    bootstrap_argocd(node, team, files)
    try:
        wait_until(lambda: any(map(is_running, node.client.objects(POD, team.space))), "the first run writes")
        team.specs = run_spec(2)
        revision = repository.commit(team.files())
        wait_application(node, node_argocd, team.name(team.space, "run"), revision)
        (job,) = jobs_of(node, team.space)
        name = job["metadata"]["name"]
        printed = node.run("kubectl", "logs", "--namespace", team.space, f"job/{name}").stdout.split()
        assert printed == sorted(printed)
        assert set(printed) == {"1", "2"}
    finally:
        remove_applications(node, node_argocd, team.environment)


def is_running(pod: Object) -> bool:
    return is_true(pod, "Ready")


def jobs_of(node: Node, namespace: str) -> list[Object]:
    return node.client.objects(JOB, namespace)
