"""A rendered repository as a whole: bootstrapped once, and from then on kept by Argo CD and by Flux."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import yaml

from kaigen.scaffold.place import Place
from kaigen.scaffold.repository import reaper_files
from kaigen.scaffold.templates import Choices
from tests.cluster.apps import CLAIM, JOB
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import Object, is_true
from tests.cluster.flux import KUSTOMIZATION, Flux
from tests.cluster.git import Repository
from tests.cluster.plane import Plane
from tests.cluster.team import (
    ARGOCD,
    FLUX,
    TENANCY,
    Team,
    bootstrap_argocd,
    named,
    remove_applications,
    remove_bootstrap,
    sync_flux,
    wait_application,
)


def started_after(plane: Plane, space: str, first: str, then: str) -> bool:
    """Whether the Job of one app was made only after that of another had completed."""
    jobs = {found["metadata"]["name"].rpartition("-")[0]: found for found in plane.client.objects(JOB, space)}
    return bool(jobs[then]["metadata"]["creationTimestamp"] >= jobs[first]["status"]["completionTime"])


@pytest.mark.ran("Application", "AppProject", by="argocd")
@pytest.mark.ran("Namespace", "ResourceQuota", by="kube-controller-manager")
def test_argocd_keeps_a_repository_and_its_project_keeps_out_the_rest(
    plane: Plane, argocd: ArgoCD, team: Team, repository: Repository
) -> None:
    team.gitops = {**ARGOCD, "tenancy": TENANCY}
    files = team.files()
    revision = repository.commit(files)
    bootstrap_argocd(plane, team, files)
    wait_application(plane, argocd, team.name(team.space), revision)
    for app in team.specs:
        wait_application(plane, argocd, team.name(team.space, app), revision)
    argocd.wait_synced(f"team-{team.environment}-root", revision)
    assert started_after(plane, team.space, "qwen", "finetune")
    level = plane.client.get("v1/Namespace", team.space)["metadata"]["labels"]
    assert level["pod-security.kubernetes.io/enforce"] == "restricted"

    # What the project does not admit is not synced, and what is there stays as it is.
    stray = "apiVersion: v1\nkind: Secret\nmetadata: {name: stray}\n"
    folder = f"rendered/{team.environment}/{team.space}/qwen/manifests"
    listed = files[f"{folder}/kustomization.yaml"].replace("resources:\n", "resources:\n  - stray.yaml\n")
    repository.commit({**files, f"{folder}/stray.yaml": stray, f"{folder}/kustomization.yaml": listed})
    name = team.name(team.space, "qwen")
    argocd.wait(name, _is_refused, "refused")
    assert plane.client.find("v1/Secret", "stray", team.space) is None

    # A renamed spec is a new app; the old one goes, and the volume that is to be kept stays.
    claims = {found["metadata"]["name"] for found in plane.client.objects(CLAIM, team.space)}
    team.specs["tuned"] = named(team.specs.pop("finetune"), "tuned")
    revision = repository.commit(team.files())
    argocd.wait_synced(f"team-{team.environment}-root", revision)
    plane.client.wait_gone(APPLICATION, team.name(team.space, "finetune"), argocd.namespace)
    for app in ("qwen", "tuned"):
        argocd.wait_synced(team.name(team.space, app), revision)
    jobs = {found["metadata"]["name"].rpartition("-")[0] for found in plane.client.objects(JOB, team.space)}
    assert jobs == {"qwen", "finetune-job", "tuned"}
    left = {found["metadata"]["name"] for found in plane.client.objects(CLAIM, team.space)}
    assert left - claims == {"tuned-output"}
    assert "finetune-output" in left

    remove_applications(plane, argocd, team.environment)
    assert plane.client.objects(JOB, team.space) == []
    assert plane.client.find("v1/Namespace", team.space), "a namespace outlives what kaigen put into it"


def _is_refused(application: Object) -> bool:
    status = application.get("status", {})
    return "not permitted in project" in str(status.get("operationState", {})) or "not permitted in project" in str(
        status.get("conditions", [])
    )


@pytest.mark.ran("ApplicationSet", by="argocd")
def test_an_application_set_finds_the_apps_of_a_repository(
    plane: Plane, argocd: ArgoCD, team: Team, repository: Repository
) -> None:
    argocd.start_application_sets()
    plane.make_namespace(team.space)
    team.gitops = {"argocd": {"namespace": "argocd", "applications": "set"}}
    files = team.files()
    revision = repository.commit(files)
    bootstrap_argocd(plane, team, files)
    for app in ("qwen", "finetune"):
        wait_application(plane, argocd, team.name(team.space, app), revision)
    labels = f"kaigen.dev/environment={team.environment}"
    found = {each["metadata"]["name"] for each in plane.client.objects(APPLICATION, argocd.namespace, labels)}
    apps = {team.name(team.space, app) for app in team.specs}
    assert found == {*apps, f"team-{team.environment}-root"}
    remove_applications(plane, argocd, team.environment)


def test_argocd_installs_the_reaper_that_kaigen_init_adds(
    plane: Plane, argocd: ArgoCD, namespace: str, repository: Repository
) -> None:
    files = reaper_files(Choices(argocd=True, namespace=namespace), Place(Path(), Path(), repository.url))
    (application,) = yaml.safe_load_all(files["reaper/reaper.argocd.yaml"])
    name, home = application["metadata"]["name"], application["spec"]["destination"]["namespace"]
    revision = repository.commit(files)
    plane.client.create(application, argocd.namespace)
    argocd.wait_synced(name, revision)
    assert plane.client.get("apps/v1/Deployment", "kaigen-reaper", home)["status"]["readyReplicas"] == 1
    (binding,) = plane.client.objects("rbac.authorization.k8s.io/v1/RoleBinding", namespace)
    (subject,) = binding["subjects"]
    assert (subject["name"], subject["namespace"]) == ("kaigen-reaper", home)

    # With its objects, as a user does: argocd app delete.
    change = {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}}
    plane.client.patch(APPLICATION, name, argocd.namespace, change)
    plane.client.delete(APPLICATION, name, argocd.namespace)
    plane.client.wait_gone(APPLICATION, name, argocd.namespace)
    assert plane.client.find("apps/v1/Deployment", "kaigen-reaper", home) is None
    plane.client.delete("v1/Namespace", home)


@pytest.mark.ran("Kustomization", by="kustomize-controller")
@pytest.mark.ran("GitRepository", by="source-controller")
@pytest.mark.parametrize("account", ["", "deployer"])
def test_flux_keeps_a_repository(plane: Plane, flux: Flux, team: Team, account: str) -> None:
    tenancy = {**TENANCY, **({"serviceAccount": account} if account else {})}
    team.url, team.gitops = flux.url(team.environment), {**FLUX, "tenancy": tenancy}
    source = f"team-{team.environment}"
    revision = sync_flux(plane, flux, team, team.files())
    flux.wait_ready(f"{source}-tenants", revision)
    flux.wait_ready(source, revision, 60)
    home = team.space if account else flux.namespace
    for app in ("qwen", "finetune", "finetune-job"):
        name = team.name(team.space, app)
        plane.client.wait(KUSTOMIZATION, name, home, partial(is_true, condition="Ready"), "ready", 120)
    assert started_after(plane, team.space, "qwen", "finetune")
    if account:
        user = f"system:serviceaccount:{team.space}:{account}"
        writes = plane.audit.writes_since(0, namespace=team.space, user=user)
        wanted = {"jobs", "persistentvolumeclaims", "roles", "rolebindings", "networkpolicies"}
        assert {entry.resource for entry in writes} >= wanted

    # A spec that goes takes its app along, and nothing else.
    del team.specs["finetune"]
    revision = sync_flux(plane, flux, team, team.files())
    flux.wait_ready(source, revision, 60)
    plane.client.wait_gone(KUSTOMIZATION, team.name(team.space, "finetune"), home)
    jobs = {found["metadata"]["name"].rpartition("-")[0] for found in plane.client.objects(JOB, team.space)}
    assert jobs == {"qwen", "finetune-job"}
    assert plane.client.find(CLAIM, "finetune-output", team.space), "kept"

    # Taking the bootstrap away leaves the apps; taking an app away takes what it made.
    remove_bootstrap(plane, flux, team.environment)
    for app in ("qwen", "finetune-job"):
        name = team.name(team.space, app)
        assert plane.client.find(KUSTOMIZATION, name, home)
        plane.client.delete(KUSTOMIZATION, name, home)
        plane.client.wait_gone(KUSTOMIZATION, name, home)
    assert plane.client.objects(JOB, team.space) == []
    plane.client.delete(KUSTOMIZATION, team.name(team.space), flux.namespace)
    plane.client.wait_gone(KUSTOMIZATION, team.name(team.space), flux.namespace)
