"""An environment moves to another namespace, or into an empty cluster, and its last app of a kind goes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from tests.cluster.apps import CLAIM, JOB, POD, spec
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object, is_true, kind_of
from tests.cluster.flux import KUSTOMIZATION, Flux
from tests.cluster.git import Repository
from tests.cluster.plane import Plane
from tests.cluster.team import (
    ARGOCD,
    FLUX,
    TENANCY,
    Team,
    bootstrap_argocd,
    is_kept,
    remove_applications,
    remove_bootstrap,
    sync_flux,
    wait_application,
)

ACCOUNT = "deployer"


class Mover:
    """A team's environment under one of the two GitOps controllers, by the objects that kaigen emits."""

    def __init__(self, plane: Plane, team: Team) -> None:
        self.plane, self.team = plane, team

    def sync(self) -> dict[str, str]:
        """Commit what the team has now, and wait until the cluster has it.

        Returns:
            The files.
        """
        raise NotImplementedError

    def end(self) -> None:
        """Take away what is synced."""
        raise NotImplementedError


class ArgoMover(Mover):
    """Argo CD, through the emitted project."""

    def __init__(self, plane: Plane, team: Team, argocd: ArgoCD, repository: Repository) -> None:
        super().__init__(plane, team)
        self.argocd, self.repository = argocd, repository
        team.gitops = {**ARGOCD, "tenancy": TENANCY}

    def sync(self) -> dict[str, str]:
        """See ``Mover``."""
        team, files = self.team, self.team.files()
        revision = self.repository.commit(files)
        bootstrap_argocd(self.plane, team, files)
        self.argocd.refresh(f"team-{team.environment}-root")
        for app in team.specs:
            wait_application(self.plane, self.argocd, team.name(team.space, app), revision)
        self.argocd.wait_synced(f"team-{team.environment}-root", revision)
        return files

    def end(self) -> None:
        """See ``Mover``."""
        remove_applications(self.plane, self.argocd, self.team.environment)


class FluxMover(Mover):
    """Flux, in the name of an account of the namespace that may do no more than its apps need."""

    def __init__(self, plane: Plane, team: Team, flux: Flux) -> None:
        super().__init__(plane, team)
        self.flux = flux
        self.source = f"team-{team.environment}"
        team.url = flux.url(team.environment)
        team.gitops = {**FLUX, "tenancy": {**TENANCY, "serviceAccount": ACCOUNT}}

    def sync(self) -> dict[str, str]:
        """See ``Mover``."""
        client, team, files = self.plane.client, self.team, self.team.files()
        revision = sync_flux(self.plane, self.flux, team, files)
        self.flux.wait_ready(self.source, revision, 120)
        for app in team.specs:
            at = partial(_applied, revision=revision)
            client.wait(KUSTOMIZATION, team.name(team.space, app), team.space, at, "ready", 120)
        return files

    def end(self) -> None:
        """See ``Mover``."""
        client = self.plane.client
        labels = f"kaigen.dev/environment={self.team.environment}"
        remove_bootstrap(self.plane, self.flux, self.team.environment)
        for found in client.objects(KUSTOMIZATION, labels=labels):
            client.delete(KUSTOMIZATION, found["metadata"]["name"], found["metadata"]["namespace"])
        for found in client.objects(KUSTOMIZATION, labels=labels):
            client.wait_gone(KUSTOMIZATION, found["metadata"]["name"], found["metadata"]["namespace"])


def _applied(kustomization: Object, revision: str) -> bool:
    applied = kustomization.get("status", {}).get("lastAppliedRevision")
    return applied == revision and is_true(kustomization, "Ready")


@pytest.fixture(params=["argocd", "flux"])
def mover(request: pytest.FixtureRequest, plane: Plane, team: Team, repository: Repository) -> Mover:
    running = request.getfixturevalue(request.param)
    if isinstance(running, ArgoCD):
        return ArgoMover(plane, team, running, repository)
    return FluxMover(plane, team, running)


def pods_made(plane: Plane, space: str) -> int:
    """How many pods were ever made in a namespace."""
    found = plane.audit.writes_since(0, namespace=space)
    return sum((entry.verb, entry.resource) == ("create", "pods") for entry in found)


def apps_with_pods(plane: Plane, space: str) -> set[str]:
    """Return the apps that have pods in a namespace, also finished ones."""
    return {pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in plane.client.objects(POD, space)}


def wait_left(plane: Plane, team: Team, files: Mapping[str, str], apps: set[str], claims: set[str]) -> None:
    """See that everything of these apps goes but the claims that are kept, which are these."""
    client, kept = plane.client, set()
    for obj in [each for app in apps for each in team.of_app(files, app)]:
        name, space = obj["metadata"]["name"], obj["metadata"]["namespace"]
        if is_kept(obj):
            assert obj["kind"] == "PersistentVolumeClaim"
            kept.add(client.get(CLAIM, name, space)["metadata"]["uid"])
        else:
            client.wait_gone(kind_of(obj), name, space)
    assert kept == claims


def claims_kept(plane: Plane, team: Team, files: Mapping[str, str], apps: set[str]) -> set[str]:
    """The uids of the apps' claims that are to be kept."""
    names = [obj["metadata"]["name"] for app in apps for obj in team.of_app(files, app) if is_kept(obj)]
    return {plane.client.get(CLAIM, name, team.space)["metadata"]["uid"] for name in names}


def test_an_environment_moves_to_another_namespace_and_leaves_what_is_kept(
    plane: Plane, mover: Mover, team: Team
) -> None:
    first = team.space
    before = mover.sync()
    apps = set(team.specs)
    kept = claims_kept(plane, team, before, apps)
    assert len(kept) == 2, "the outputs of both Jobs"

    old = Team(team.folder, team.url, team.environment, team.gitops, team.specs, first)
    team.space = f"moved-{team.environment}"
    after = mover.sync()
    wait_left(plane, old, before, apps, kept)
    assert {found["metadata"]["name"].rpartition("-")[0] for found in plane.client.objects(JOB, team.space)} == apps
    # Each ran once where it was, and once where it is; what was kept is not what the new ones write to.
    assert (pods_made(plane, first), pods_made(plane, team.space)) == (len(apps), len(apps))
    kept_here = claims_kept(plane, team, after, apps)
    assert kept_here.isdisjoint(kept)

    # The last app that holds a Role goes, and the Role with it.
    gone = {"qwen", "finetune"}
    kept = claims_kept(plane, team, after, gone)
    team.specs = {name: spec for name, spec in team.specs.items() if name not in gone}
    mover.sync()
    wait_left(plane, team, after, gone, kept)
    assert pods_made(plane, team.space) == len(apps)
    mover.end()


def test_an_empty_cluster_reads_the_stored_results_of_a_run_in_place_of_running_it_again(
    plane: Plane, mover: Mover, team: Team
) -> None:
    volume = {"volume": {"size": "1Gi"}}
    output = {**volume, "bucket": {"uri": "s3://acme-results/tune"}}
    web = {"engine": "container", "image": "registry.example.com/web:1", "model": "tuned", "port": 8000}
    team.specs = {
        "tune": spec("Job", "tune", image="registry.example.com/tune:1", output=output),
        "tuned": spec("Model", "tuned", source={"job": {"name": "tune", "path": "merged"}}, store=volume),
        "web": spec("Topology", "web", **web),
    }
    before = mover.sync()
    jobs = [obj["metadata"] for obj in team.of_app(before, "tune") if obj["kind"] == "Job"]
    (run,) = [each["name"] for each in jobs if each["labels"]["app.kubernetes.io/component"] == "run"]
    assert apps_with_pods(plane, team.space) == set(team.specs)
    earlier = pods_made(plane, team.space)

    mover.end()
    plane.client.delete("v1/Namespace", team.space)
    plane.client.wait_gone("v1/Namespace", team.space, timeout=120)
    # As docs/operate/recover.md has it: no spec of the finished Job, and its folder in the bucket.
    del team.specs["tune"]
    stored = {"s3": {"uri": f"s3://acme-results/tune/{run}/merged"}}
    team.specs["tuned"] = spec("Model", "tuned", source=stored, store=volume)
    mover.sync()
    assert apps_with_pods(plane, team.space) == {"tuned", "web"}
    assert pods_made(plane, team.space) == earlier + len(plane.client.objects(POD, team.space))
    mover.end()
