"""Jobs of several nodes in a repository that Argo CD or Flux keeps, and the app that serves what one of them wrote."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cluster.apps import JOB, POD, spec
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object, is_true
from tests.cluster.flux import KUSTOMIZATION, Flux
from tests.cluster.git import Repository
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.simulate import Course, set_course
from tests.cluster.team import (
    ARGOCD,
    FLUX,
    TENANCY,
    Team,
    bootstrap_argocd,
    remove_applications,
    sync_flux,
    wait_application,
)

JOB_SET = "jobset.x-k8s.io/v1alpha2/JobSet"
DEPLOYMENT = "apps/v1/Deployment"
ROUNDS = 3
VOLUME = {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "standard"}
RUNS = (JOB_SET, JOB)


def specs(command: str) -> dict[str, Object]:
    """A JobSet, an Indexed Job, and a service of what the JobSet writes."""
    common = {"image": "train:1", "nodes": 2, "command": [command], "output": {"volume": VOLUME}}
    return {
        "train": spec("Job", "train", groups="jobSet", **common),
        "tune": spec("Job", "tune", groups="indexedJob", **common),
        "chat": spec("Topology", "chat", engine="transformers", model={"job": {"name": "train"}}),
    }


def staying(plane: Plane, kind: str, space: str) -> list[Object]:
    """Objects of a kind that are not being deleted."""
    found = plane.client.objects(kind, space)
    return [each for each in found if "deletionTimestamp" not in each["metadata"]]


def runs(plane: Plane, space: str) -> dict[str, str]:
    """Name and uid of every run, without the Jobs of JobSets."""
    return {
        found["metadata"]["name"]: found["metadata"]["uid"]
        for kind in RUNS
        for found in staying(plane, kind, space)
        if not any(owner["kind"] == "JobSet" for owner in found["metadata"].get("ownerReferences", []))
    }


def is_complete(plane: Plane, space: str) -> bool:
    """Whether the JobSet and the Job are complete; a JobSet deletes no Jobs."""
    (job_set,) = staying(plane, JOB_SET, space)
    return is_true(job_set, condition="Completed") and all(
        is_true(found, condition="Complete") for found in staying(plane, JOB, space)
    )


def check_one_run(plane: Plane, team: Team, before: dict[str, str]) -> dict[str, str]:
    """Wait until both runs are complete and each ran once; return them."""
    wait_until(lambda: not set(before) & set(runs(plane, team.space)), "the old runs are gone", 120)
    wait_until(lambda: is_complete(plane, team.space), "the runs are complete", 120)
    found = runs(plane, team.space)
    assert sorted(name.rpartition("-")[0] for name in found) == ["train", "tune"]
    (job_set,) = staying(plane, JOB_SET, team.space)
    assert job_set["status"].get("restarts", 0) == 0
    pods = [each for each in staying(plane, POD, team.space) if each["status"]["phase"] == "Succeeded"]
    assert len(pods) == 4
    (gate,) = plane.client.get(DEPLOYMENT, "chat", team.space)["spec"]["template"]["spec"]["initContainers"]
    assert f"--name={job_set['metadata']['name']}" in gate["args"]
    return found


@pytest.mark.ran("Application", "AppProject", by="argocd")
def test_argocd_runs_jobs_of_several_nodes_once(
    plane: Plane, argocd: ArgoCD, groups: GroupControllers, team: Team, repository: Repository
) -> None:
    groups.start_job_set()
    plane.make_namespace(team.space)
    set_course(plane.client, team.space, Course(delay=2))
    team.gitops = dict(ARGOCD)
    before: dict[str, str] = {}
    for command in ("first", "second"):
        team.specs = specs(command)
        files = team.files()
        revision = repository.commit(files)
        bootstrap_argocd(plane, team, files)
        for app in team.specs:
            wait_application(plane, argocd, team.name(team.space, app), revision)
        before = check_one_run(plane, team, before)
        # Argo CD knows the health of a JobSet only from kaigen's script, and so waits for it.
        healthy = partial(is_healthy, since=completed_at(plane, team.space))
        argocd.wait(team.name(team.space, "train"), healthy, "healthy since its JobSet is complete")
        mark = plane.audit.mark()
        for _ in range(ROUNDS):
            for app in team.specs:
                argocd.refresh(team.name(team.space, app))
                argocd.wait_synced(team.name(team.space, app), revision)
        assert plane.audit.writes_since(mark, namespace=team.space, user=argocd.user) == []
        assert runs(plane, team.space) == before
    remove_applications(plane, argocd, team.environment)


def is_healthy(application: Object, since: str) -> bool:
    """Whether an Application became healthy at a time or later, and is healthy."""
    health = application.get("status", {}).get("health", {})
    return health.get("status") == "Healthy" and str(health["lastTransitionTime"]) >= since


def completed_at(plane: Plane, space: str) -> str:
    """Return when the JobSet was complete."""
    (job_set,) = staying(plane, JOB_SET, space)
    (found,) = [each for each in job_set["status"]["conditions"] if each["type"] == "Completed"]
    return str(found["lastTransitionTime"])


@pytest.mark.ran("Kustomization", by="kustomize-controller")
def test_flux_runs_jobs_of_several_nodes_once(plane: Plane, flux: Flux, groups: GroupControllers, team: Team) -> None:
    groups.start_job_set()
    tenancy = {**TENANCY, "serviceAccount": "deployer"}
    team.url, team.gitops = flux.url(team.environment), {**FLUX, "tenancy": tenancy}
    user = f"system:serviceaccount:{team.space}:deployer"
    plane.make_namespace(team.space)
    set_course(plane.client, team.space, Course(delay=2))
    before: dict[str, str] = {}
    for command in ("first", "second"):
        team.specs = specs(command)
        revision = sync_flux(plane, flux, team, team.files())
        for app in team.specs:
            flux.wait_ready(team.name(team.space, app), revision, namespace=team.space)
        before = check_one_run(plane, team, before)
        mark = plane.audit.mark()
        for _ in range(ROUNDS):
            for app in team.specs:
                flux.fetch(KUSTOMIZATION, team.name(team.space, app), team.space)
            for app in team.specs:
                flux.wait_ready(team.name(team.space, app), revision, namespace=team.space)
        assert plane.audit.writes_since(mark, namespace=team.space, user=user) == []
        assert runs(plane, team.space) == before
    # Flux applies what serves the output of a JobSet when that is complete.
    served = plane.client.get(DEPLOYMENT, "chat", team.space)["metadata"]["managedFields"]
    applied = max(entry["time"] for entry in served if entry["manager"] == "kustomize-controller")
    assert applied >= completed_at(plane, team.space)
