"""A team's repository with a gate, synced to a real node by Argo CD or Flux, and promotions from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.apps import JOB
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object, is_true
from tests.cluster.flux import KUSTOMIZATION, Flux
from tests.cluster.git import Repository
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

SPEED = "app.kubernetes.io/name=speed"


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


def make_cluster(request: pytest.FixtureRequest, name: str, node: Node, namespace: str, folder: Path) -> Cluster:
    """Return a repository that a controller syncs.

    Args:
        request: of the fixture that asks; the controllers are fixtures themselves.
        name: `argocd` or `flux`.
        node: where it works.
        namespace: where the apps go.
        folder: for the repository.
    """
    if name == "argocd":
        return WithArgoCD(node, request.getfixturevalue("node_argocd"), namespace, folder)
    return WithFlux(node, request.getfixturevalue("node_flux"), namespace, folder)


def jobs(node: Node, namespace: str) -> dict[str, Object]:
    """Return the runs of the gate by name."""
    return {each["metadata"]["name"]: each for each in node.client.objects(JOB, namespace, SPEED)}


def wait_run(cluster: Cluster, condition: str, before: set[str], patience: float = 180) -> str:
    """Wait until a new run of the gate has ended, and return its name."""

    def ended() -> str:
        found = jobs(cluster.node, cluster.team.space)
        new = [name for name, job in found.items() if name not in before and is_true(job, condition)]
        return next(iter(new), "")

    wait_until(lambda: bool(ended()), f"a run is {condition}", patience, every=0.5)
    return ended()


def promote(cluster: Cluster, code: int) -> str:
    """Run the promotion with the reports of the cluster."""
    words = ("kaigen", "promote", "--from", cluster.team.environment, "--to", "prod", "--from-cluster")
    return call(cluster.node, *words, folder=cluster.team.folder, code=code)


def read_reports(cluster: Cluster, code: int) -> str:
    """Read the reports of the cluster; the exit code is 1 while a gate has not passed for what Git has."""
    words = ("kaigen", "gates", "--env", cluster.team.environment, "--from-cluster")
    return call(cluster.node, *words, folder=cluster.team.folder, code=code)


def change(cluster: Cluster, *specs: Object) -> None:
    """Write specs that are not committed: the cluster has the earlier ones."""
    cluster.team.specs = {each["metadata"]["name"]: each for each in specs}
    cluster.team.write()


def report_of(cluster: Cluster) -> str:
    """Return the file of the report; empty if there is none."""
    path = cluster.team.folder / "reports" / cluster.team.environment / cluster.team.space / "speed.md"
    return path.read_text("utf-8") if path.exists() else ""


def measured(cluster: Cluster) -> dict[str, Any]:
    """Return what the gate measured, by the file of the report."""
    found = json.loads(report_of(cluster).rpartition("```json\n")[2].partition("```")[0])["measured"]
    assert isinstance(found, dict)
    return found


def decides(cluster: Cluster, *specs: Object, strict: Object, loose: Object, patience: float = 180) -> set[str]:
    """Check that a strict gate stops a promotion and a loose one lets it pass; return the names of its runs."""
    node, team = cluster.node, cluster.team
    pins = team.folder / "pins/prod.yaml"
    cluster.publish(*specs, strict)
    failed = wait_run(cluster, "Failed", set(), patience)
    wait_until(lambda: cluster.health("speed") not in ("", "healthy"), "the sync fails", 120)
    status = call(node, "kaigen", "status", "--env", team.environment, "speed", folder=team.folder, code=1)
    assert "ttft.p95 is" in status
    assert "more than 1 ms" in promote(cluster, 1)
    assert not pins.exists()
    assert f"`{failed}` judged `assistant`" in report_of(cluster)

    cluster.publish(*specs, loose)
    passed = wait_run(cluster, "Complete", {failed}, patience)
    wait_until(lambda: cluster.health("speed") == "healthy", "the sync ends", 120)
    promote(cluster, 0)
    assert pins.exists()
    assert f"`{passed}` judged `assistant`" in report_of(cluster)
    return {failed, passed}
