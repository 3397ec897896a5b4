"""Gates on a real node, under Argo CD and Flux: a benchmark decides about a promotion, an evaluation counts answers.

The engine is a small server with OpenAI's API. `test_vllm_gates.py` has vLLM and its own benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests import openai_server, vllm_bench
from tests.cluster.apps import JOB, compiled, job_name, spec
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object, is_true
from tests.cluster.flux import KUSTOMIZATION, Flux
from tests.cluster.git import Repository
from tests.cluster.images import BASE, build_from, runtime_image
from tests.cluster.live import call
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.team import (
    ARGOCD,
    FLUX,
    Team,
    bootstrap_argocd,
    remove_applications,
    remove_bootstrap,
    sync_flux,
)

BENCH = "kaigen.test/bench:1"
SMALL = {"cpu": "50m", "memory": "128Mi"}
SPEED = "app.kubernetes.io/name=speed"
TASK = """
task: capitals
dataset_path: json
dataset_kwargs: {data_files: {test: /inputs/tasks/capitals.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "What is the capital of {{country}}?"
doc_to_target: "{{city}}"
generation_kwargs: {until: ["\\n"]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


def engine(**env: str) -> Object:
    """Return the Topology that is judged."""
    code = Path(openai_server.__file__).read_text("utf-8")
    return spec(
        "Topology",
        "assistant",
        engine="container",
        image=BASE,
        command=["python", "-c", code],
        probes={"ready": "/v1/models"},
        resources=SMALL,
        env={"DELAY": "0.02", **env},
    )


def speed(limit: str) -> Object:
    """Return the gate: the 95th percentile of the time to the first token."""
    return spec(
        "Job",
        "speed",
        workload="benchmark",
        target={"name": "assistant", "wait": "3m"},
        benchmark={"image": BENCH, "requests": 20, "concurrency": 4, "promptWords": 10, "outputTokens": 5},
        require={"ttft": {"p95": limit}, "throughput": {"min": 1}},
        resources=SMALL,
    )


def bench_image() -> Path:
    """Return the archive of an image whose `vllm bench serve` is that of the tests."""
    files = {"vllm": Path(vllm_bench.__file__).read_bytes()}
    return build_from(BENCH, f"FROM {BASE}\nCOPY vllm /usr/local/bin/vllm\n", files)


class Cluster:
    """A team's repository that one of the two controllers syncs to the real node."""

    def __init__(self, node: Node, team: Team) -> None:
        self.node, self.team = node, team

    def publish(self, *specs: Object) -> None:
        """Commit specs, and have them synced."""
        raise NotImplementedError

    def health(self, app: str) -> str:
        """Return `healthy`, or what the controller says of the gate; empty while it waits."""
        raise NotImplementedError

    def remove(self) -> None:
        """End the syncing."""
        raise NotImplementedError


class WithArgoCD(Cluster):
    """Argo CD syncs."""

    def __init__(self, node: Node, argocd: ArgoCD, namespace: str, folder: Path) -> None:
        self.argocd, self.repository = argocd, Repository(folder / "repository")
        super().__init__(node, make_team(folder, self.repository.url, ARGOCD, namespace))

    def publish(self, *specs: Object) -> None:
        """See `Cluster`."""
        self.team.specs = {each["metadata"]["name"]: each for each in specs}
        files = self.team.files()
        self.repository.commit(files)
        bootstrap_argocd(self.node, self.team, files)
        self.argocd.refresh(f"team-{self.team.environment}-root")

    def health(self, app: str) -> str:
        """See `Cluster`."""
        name = self.team.name(self.team.space, app)
        found = self.node.client.find("argoproj.io/v1alpha1/Application", name, self.argocd.namespace) or {}
        status = str(found.get("status", {}).get("health", {}).get("status", ""))
        return {"Healthy": "healthy", "Degraded": "Degraded"}.get(status, "")

    def remove(self) -> None:
        """See `Cluster`."""
        remove_applications(self.node, self.argocd, self.team.environment)


class WithFlux(Cluster):
    """Flux syncs."""

    def __init__(self, node: Node, flux: Flux, namespace: str, folder: Path) -> None:
        self.flux = flux
        environment = namespace[-6:]
        super().__init__(node, make_team(folder, flux.url(environment), FLUX, namespace))

    def publish(self, *specs: Object) -> None:
        """See `Cluster`."""
        self.team.specs = {each["metadata"]["name"]: each for each in specs}
        sync_flux(self.node, self.flux, self.team, self.team.files())

    def health(self, app: str) -> str:
        """See `Cluster`."""
        name = self.team.name(self.team.space, app)
        found = self.node.client.find(KUSTOMIZATION, name, self.flux.namespace) or {}
        if is_true(found, "Ready"):
            return "healthy"
        ready = [each for each in found.get("status", {}).get("conditions", []) if each["type"] == "Ready"]
        return "".join(each["reason"] for each in ready if each["status"] == "False")

    def remove(self) -> None:
        """See `Cluster`."""
        remove_bootstrap(self.node, self.flux, self.team.environment)


def make_team(folder: Path, url: str, gitops: Object, namespace: str) -> Team:
    """Return a repository with the environment of the test, and the next one."""
    environment = namespace[-6:]
    settings = {
        "environments": {environment: {"namespace": namespace}, "prod": {"namespace": "prod"}},
        "promotion": [environment, "prod"],
    }
    return Team(folder / "team", url, environment, gitops, {}, namespace, settings)


@pytest.fixture(scope="module")
def node_flux(node: Node) -> Iterator[Flux]:
    """Flux on the real node."""
    running = Flux(node)
    yield running
    running.close()


@pytest.fixture(params=["argocd", "flux"])
def cluster(node: Node, node_namespace: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Return a repository that each of the two controllers syncs."""
    node.import_image(bench_image())
    found: Cluster
    if request.param == "argocd":
        found = WithArgoCD(node, request.getfixturevalue("node_argocd"), node_namespace, tmp_path)
    else:
        found = WithFlux(node, request.getfixturevalue("node_flux"), node_namespace, tmp_path)
    yield found
    found.remove()


def jobs(node: Node, namespace: str) -> dict[str, Object]:
    """Return the runs of the gate by name."""
    return {each["metadata"]["name"]: each for each in node.client.objects(JOB, namespace, SPEED)}


def wait_run(cluster: Cluster, condition: str, before: set[str]) -> str:
    """Wait until a new run of the gate has ended, and return its name."""

    def ended() -> str:
        found = jobs(cluster.node, cluster.team.space)
        new = [name for name, job in found.items() if name not in before and is_true(job, condition)]
        return next(iter(new), "")

    wait_until(lambda: bool(ended()), f"a run is {condition}", 180, every=0.5)
    return ended()


def promote(cluster: Cluster, code: int) -> str:
    """Run the promotion with the reports of the cluster."""
    words = ("kaigen", "promote", "--from", cluster.team.environment, "--to", "prod", "--from-cluster")
    return call(cluster.node, *words, folder=cluster.team.folder, code=code)


@pytest.mark.ran("Job", "Deployment", "Service", "ConfigMap", "ServiceAccount", "Role", "RoleBinding", by="node")
def test_a_benchmark_decides_about_a_promotion(cluster: Cluster) -> None:
    node, team = cluster.node, cluster.team
    pins = team.folder / "pins/prod.yaml"
    cluster.publish(engine(), speed("1ms"))
    failed = wait_run(cluster, "Failed", set())
    wait_until(lambda: cluster.health("speed") not in ("", "healthy"), "the sync fails", 120)
    status = call(node, "kaigen", "status", "--env", team.environment, "speed", folder=team.folder, code=1)
    assert "ttft.p95 is" in status
    printed = promote(cluster, 1)
    assert "more than 1 ms" in printed
    assert not pins.exists()
    report = team.folder / "reports" / team.environment / team.space / "speed.md"
    assert f"`{failed}` judged `assistant`" in report.read_text()

    cluster.publish(engine(), speed("60s"))
    passed = wait_run(cluster, "Complete", {failed})
    wait_until(lambda: cluster.health("speed") == "healthy", "the sync ends", 120)
    promote(cluster, 0)
    assert pins.exists()
    assert f"`{passed}` judged `assistant`" in report.read_text()
    measured = json.loads(report.read_text().rpartition("```json\n")[2].partition("```")[0])["measured"]
    assert 20 <= measured["ttft.p50"] < 60_000
    assert measured["errors"] == 0

    # Another commit about something else runs nothing again.
    cluster.publish(engine(), speed("60s"), spec("Job", "other", image=BASE, command=["true"], resources=SMALL))
    other = partial(node.client.objects, JOB, team.space, "app.kubernetes.io/name=other")
    wait_until(lambda: any(is_true(each, "Complete") for each in other()), "the other app is synced", 120)
    assert set(jobs(node, team.space)) == {passed}
    # Another engine is judged anew, and its pods, not those before them.
    cluster.publish(engine(DELAY="0.2"), speed("60s"))
    assert "outdated" in promote(cluster, 1)
    wait_run(cluster, "Complete", {failed, passed})
    promote(cluster, 0)
    measured = json.loads(report.read_text().rpartition("```json\n")[2].partition("```")[0])["measured"]
    assert measured["ttft.p50"] >= 200


@pytest.mark.ran("Job", "ConfigMap", "ServiceAccount", "Role", "RoleBinding", by=("node", "evaluate"))
def test_an_evaluation_counts_right_answers(node: Node, node_namespace: str, tmp_path: Path) -> None:
    node.import_image(runtime_image("evaluate"))
    lines = [json.dumps({"country": land, "city": city}) for land, city in openai_server.CAPITALS.items()]
    data = {"capitals.yaml": TASK, "capitals.jsonl": "\n".join(lines)}
    node.client.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tasks"}, "data": data}, node_namespace
    )
    quality = {
        "workload": "evaluate",
        "target": "assistant",
        "evaluate": {"tasks": ["capitals"], "folder": "/inputs/tasks"},
        "volumes": {"tasks": {"configMap": "tasks", "mountPath": "/inputs/tasks"}},
        "resources": {"cpu": "100m", "memory": "1Gi"},
    }
    for app, minimum, condition in (("good", 0.8, "Complete"), ("bad", 0.9, "Failed")):
        job = spec("Job", app, **quality, require={"accuracy": {"min": minimum}})
        apps = compiled(tmp_path / app, [engine(WRONG="Kenya"), job], node_namespace, "generic")
        for each in apps.values():
            for rendered in each.objects:
                node.client.apply(rendered.body)
        node.client.wait(
            *(JOB, job_name(apps[app]), node_namespace),
            *(partial(is_true, condition=condition), condition),
            timeout=300,
        )
        facts = node.client.get("v1/ConfigMap", f"{app}-facts", node_namespace)["data"]
        assert (facts["gate"], facts["accuracy.capitals"]) == ("passed" if app == "good" else "failed", "0.8")
