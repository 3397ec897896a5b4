"""From commit to cluster: `kaigen publish` to a Git server, and what Argo CD and Flux then do of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.commit_promotion import Request, plan_commit_promotion
from tests.cluster.apps import JOB, add_gpu_node, spec
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import is_true
from tests.cluster.flux import GIT_REPOSITORY, KUSTOMIZATION, Flux
from tests.cluster.plane import Plane
from tests.cluster.publisher import BRANCH, Publisher
from tests.cluster.registry import PASSWORD as REGISTRY_PASSWORD
from tests.cluster.registry import USER as REGISTRY_USER
from tests.cluster.registry import LocalRegistry
from tests.cluster.team import (
    ARGOCD,
    FLUX,
    PROJECT,
    TENANCY,
    Team,
    bootstrap_argocd,
    bootstrap_flux,
    changed,
    remove_applications,
    remove_bootstrap,
    wait_application,
)
from tests.unit.publish.gitserver import PASSWORD, USER, git, serving

FINETUNE = "app.kubernetes.io/name=finetune"


@pytest.fixture
def publisher(plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    """A team that has published nothing yet. Its namespace goes at the end."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    add_gpu_node(plane)
    (tmp_path / "server").mkdir()
    with serving(tmp_path / "server") as server:
        found = Publisher(tmp_path / "clone", server)
        yield found
    plane.client.delete("v1/Namespace", found.team.space)


def give_credentials(plane: Plane, argocd: ArgoCD, team: Team) -> None:
    """Give Argo CD the password of a repository."""
    plane.client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": f"repository-{team.environment}",
                "namespace": argocd.namespace,
                "labels": {"argocd.argoproj.io/secret-type": "repository"},
            },
            "stringData": {"type": "git", "url": team.url, "username": USER, "password": PASSWORD},
        }
    )


def change_finetune(publisher: Publisher) -> str:
    """Change one field of one spec and publish; everything else must stay.

    Returns:
        The commit.
    """
    team, before = publisher.team, publisher.files()
    team.specs["finetune"] = changed(team.specs["finetune"], args=["--epochs=2"])
    commit, said = publisher.publish()
    assert f"  ~ rendered/{team.environment}/{team.space}/finetune\n" in said
    assert sum(line.startswith("  ") for line in said.splitlines()) == 1
    after = publisher.files()
    differ = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert {path for path in differ if not path.endswith(".kaigen-index")} == {
        f"rendered/{team.environment}/{team.space}/finetune/manifests/{name}.yaml" for name in ("job", "networkpolicy")
    }
    return commit


def check_writes(plane: Plane, publisher: Publisher, mark: int, user: str) -> None:
    """See that since a mark a syncer has made the new run, removed the old one, and touched no other app."""
    team, files = publisher.team, publisher.files()
    since = plane.audit.writes_since(mark, namespace=team.space)
    objects = team.of_app(files, "finetune")
    own = {obj["metadata"]["name"] for obj in objects}
    (new,) = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "Job"]
    # Argo CD applies the whole app, also what is as it was.
    (old,) = {entry.name for entry in since if entry.user == user} - own
    assert old.rpartition("-")[0] == "finetune"
    assert [found["metadata"]["name"] for found in plane.client.objects(JOB, team.space, FINETUNE)] == [new]
    # The objects and pods of other apps did not change. Kubernetes 1.37 writes into claims whether pods use them.
    others = {obj["metadata"]["name"] for app in team.specs for obj in team.of_app(files, app)} - own
    touched = [entry for entry in since if entry.resource != "persistentvolumeclaims/status"]
    assert not [str(entry) for entry in touched if entry.name.startswith(tuple(others))]


def test_argocd_syncs_what_is_published_by_its_own_project_and_a_change_touches_one_app(
    plane: Plane, argocd: ArgoCD, publisher: Publisher
) -> None:
    team = publisher.team
    team.gitops = {**ARGOCD, "branch": BRANCH, "tenancy": TENANCY}
    commit, _ = publisher.publish()
    give_credentials(plane, argocd, team)
    bootstrap_argocd(plane, team, publisher.files())
    root = f"team-{team.environment}-root"
    names = [root, team.name(team.space), *(team.name(team.space, app) for app in team.specs)]
    for name in names:
        wait_application(plane, argocd, name, commit)
    labels = f"kaigen.dev/environment={team.environment}"
    made = plane.client.objects(APPLICATION, argocd.namespace, labels)
    assert {found["metadata"]["name"] for found in made} == set(names)
    projects = {found["metadata"]["name"] for found in plane.client.objects(PROJECT, argocd.namespace, labels)}
    assert {found["spec"]["project"] for found in made} == projects
    assert "default" not in projects

    mark = plane.audit.mark()
    commit = change_finetune(publisher)
    for name in names:
        wait_application(plane, argocd, name, commit)
    check_writes(plane, publisher, mark, argocd.user)
    again = plane.client.objects(APPLICATION, argocd.namespace, labels)
    assert {found["metadata"]["name"]: found["spec"] for found in again} == {
        found["metadata"]["name"]: found["spec"] for found in made
    }

    remove_applications(plane, argocd, team.environment)
    assert plane.client.objects(JOB, team.space) == []
    plane.client.delete("v1/Secret", f"repository-{team.environment}", argocd.namespace)


def test_argocd_runs_in_each_environment_the_commit_that_was_promoted_to_it(
    plane: Plane, argocd: ArgoCD, publisher: Publisher
) -> None:
    prod = publisher.team
    prod.specs = {"tune": spec("Job", "tune", image="example.com/tune:1", args=["--epochs=1"])}
    prod.gitops = {**ARGOCD, "branch": BRANCH, "tenancy": TENANCY}
    dev = Team(prod.folder, prod.url, f"{prod.environment}d", prod.gitops, prod.specs)
    prod.settings["environments"] = {
        dev.environment: {"namespace": dev.space},
        prod.environment: {"namespace": prod.space, "follows": "commits"},
    }
    pins = prod.folder / "pins" / f"{prod.environment}.yaml"
    pins.parent.mkdir()
    pins.write_text("apiVersion: kaigen.dev/v1alpha1\nkind: Pins\ncommits: {}\n")

    def jobs() -> list[list[str]]:
        """Publish, and return the Jobs of dev and of prod once Argo CD has synced them."""
        commit, _ = publisher.publish()
        files, found = publisher.files(), []
        for team in (dev, prod):
            if team.of_app(files, "tune"):  # Without apps there is no folder that Argo CD could read.
                bootstrap_argocd(plane, team, files)
                for name in (f"team-{team.environment}-root", team.name(team.space, "tune")):
                    wait_application(plane, argocd, name, commit)
            found.append([each["metadata"]["name"] for each in plane.client.objects(JOB, team.space)])
        return found

    def promote(**request: Any) -> None:
        plan_commit_promotion(prod.folder, Request(prod.environment, **request)).write()

    give_credentials(plane, argocd, dev)
    first, none = jobs()
    assert (len(first), none) == (1, [])
    tested = git(prod.folder, "rev-parse", "HEAD").strip()
    promote(source=dev.environment)
    assert jobs() == [first, first]
    # A merge reaches the first environment only.
    prod.specs["tune"] = changed(prod.specs["tune"], args=["--epochs=2"])
    second, still = jobs()
    assert (second != first, still) == (True, first)
    promote(source=dev.environment)
    assert jobs() == [second, second]
    promote(commit=tested)
    assert jobs() == [second, first]

    for team in (dev, prod):
        remove_applications(plane, argocd, team.environment)
    plane.client.delete("v1/Namespace", dev.space)
    plane.client.delete("v1/Secret", f"repository-{dev.environment}", argocd.namespace)


def test_flux_syncs_what_is_published_and_a_change_touches_one_app(
    plane: Plane, flux: Flux, publisher: Publisher
) -> None:
    team = publisher.team
    team.gitops = {**FLUX, "branch": BRANCH, "tenancy": TENANCY}
    commit, _ = publisher.publish()
    source, revision = f"team-{team.environment}", f"{BRANCH}@sha1:{commit}"
    bootstrap_flux(plane, team, publisher.files())
    for app in team.specs:
        name = team.name(team.space, app)
        plane.client.wait(KUSTOMIZATION, name, flux.namespace, partial(is_true, condition="Ready"), "ready", 120)
        flux.wait_ready(name, revision)

    mark = plane.audit.mark()
    revision = f"{BRANCH}@sha1:{change_finetune(publisher)}"
    flux.fetch(GIT_REPOSITORY, source)
    for app in team.specs:
        flux.wait_ready(team.name(team.space, app), revision, 120)
    check_writes(plane, publisher, mark, flux.user)

    remove_bootstrap(plane, flux, team.environment)
    for found in plane.client.objects(KUSTOMIZATION, flux.namespace, f"kaigen.dev/environment={team.environment}"):
        plane.client.delete(KUSTOMIZATION, found["metadata"]["name"], flux.namespace)
        plane.client.wait_gone(KUSTOMIZATION, found["metadata"]["name"], flux.namespace)
    assert plane.client.objects(JOB, team.space) == []


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    running = LocalRegistry(tmp_path_factory.mktemp("registry") / "registry")
    yield running
    running.close()


def chart_revision(files: Mapping[str, str], team: Team, app: str) -> str:
    """The version of an app's chart that its Application names."""
    path = f"rendered/{team.environment}/_argocd/apps/{team.space}.{app}.yaml"
    return str(yaml.safe_load(files[path])["spec"]["source"]["targetRevision"])


@pytest.mark.ran("Application", by="argocd")
def test_argocd_installs_charts_from_a_registry_at_the_version_that_was_pushed(
    plane: Plane,
    argocd: ArgoCD,
    publisher: Publisher,
    registry: LocalRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    team, charts = publisher.team, f"oci://{registry.host}/argocd"
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    registry.login(tmp_path / "docker")
    team.settings["format"] = "chart"
    team.settings["publish"].update(charts=charts, versionSuffix=True)
    team.gitops = {**ARGOCD, "branch": BRANCH, "tenancy": TENANCY, "charts": charts}
    publisher.publish()
    give_credentials(plane, argocd, team)
    registry_name = f"registry-{team.environment}"
    access = {"type": "helm", "enableOCI": "true", "insecureOCIForceHttp": "true"}
    access |= {"url": charts.removeprefix("oci://"), "username": REGISTRY_USER, "password": REGISTRY_PASSWORD}
    plane.client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": registry_name,
                "namespace": argocd.namespace,
                "labels": {"argocd.argoproj.io/secret-type": "repository"},
            },
            "stringData": access,
        }
    )
    bootstrap_argocd(plane, team, publisher.files())
    before = {app: chart_revision(publisher.files(), team, app) for app in team.specs}
    for app, version in before.items():
        assert "+" in version
        wait_application(plane, argocd, team.name(team.space, app), version)

    # One changed spec is one new chart, and one new run.
    team.specs["finetune"] = changed(team.specs["finetune"], args=["--epochs=2"])
    commit, _ = publisher.publish()
    after = {app: chart_revision(publisher.files(), team, app) for app in team.specs}
    assert {app for app in after if after[app] != before[app]} == {"finetune"}
    (old,) = plane.client.objects(JOB, team.space, FINETUNE)
    wait_application(plane, argocd, f"team-{team.environment}-root", commit)
    wait_application(plane, argocd, team.name(team.space, "finetune"), after["finetune"])
    plane.client.wait_gone(JOB, old["metadata"]["name"], team.space)
    (new,) = plane.client.objects(JOB, team.space, FINETUNE)
    assert "--epochs=2" in new["spec"]["template"]["spec"]["containers"][0]["args"]

    remove_applications(plane, argocd, team.environment)
    for name in (f"repository-{team.environment}", registry_name):
        plane.client.delete("v1/Secret", name, argocd.namespace)
