"""TrainJobs of Kubeflow Trainer: Kueue admits them as predicted, and Argo CD and Flux run each once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.apps import compiled, find
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
from tests.cluster.test_queue_kind import (
    API,
    RUN_SECONDS,
    apply,
    effects,
    is_admitted,
    job,
    predicted,
    spec,
    wait_active,
    why_pending,
)

pytestmark = pytest.mark.engine

TRAINER = "trainer.kubeflow.org/v1alpha1"
TRAIN_JOB, RUNTIME = f"{TRAINER}/TrainJob", f"{TRAINER}/TrainingRuntime"
JOB_SET = "jobset.x-k8s.io/v1alpha2/JobSet"
ROUNDS = 3


@pytest.fixture
def queues(plane: Plane, groups: GroupControllers, namespace: str) -> Iterator[str]:
    """A namespace on a plane with Kubeflow Trainer and Kueue; what belongs to the cluster is deleted after the test."""
    groups.start_leader_worker_set()
    groups.start_trainer()
    groups.start_kueue()
    yield namespace
    for kind in ("ClusterQueue", "ResourceFlavor"):
        for body in plane.client.objects(f"{API}/{kind}", ""):
            if body["metadata"]["name"].startswith(namespace):
                plane.client.delete(f"{API}/{kind}", body["metadata"]["name"])


def test_a_train_job_waits_for_the_quota_of_both_pods_as_plan_and_diff_said(
    plane: Plane, queues: str, tmp_path: Path
) -> None:
    quota = spec("Queue", queues, quota=[{"cpu": "4", "memory": "64Gi"}])
    runs = [job(name, queues, nodes=2, groups="trainJob") for name in ("first", "second")]
    apps = compiled(tmp_path, [quota, *runs], queues, "generic")
    first, second = (find(apps[name], "TrainJob")["metadata"]["name"] for name in ("first", "second"))
    said = predicted(apps, queues)
    assert [(said[name].never, said[name].waits) for name in (first, second)] == [((), False), ((), True)]
    assert f"waits for quota of the queue {queues} when all of the queue are there at once" in effects(
        [apps[queues], apps["first"]], list(apps.values())
    )

    set_course(plane.client, queues, Course(state="completed", delay=RUN_SECONDS))
    apply(plane, apps[queues])
    wait_active(plane, queues, queues)
    apply(plane, apps["first"])
    wait_until(lambda: is_admitted(plane, queues, first), "the first is admitted", every=0.2)
    apply(plane, apps["second"])
    wait_until(lambda: "insufficient unused quota for cpu" in why_pending(plane, queues, second), "it waits", every=0.2)
    assert not is_admitted(plane, queues, second)
    wait_until(lambda: is_admitted(plane, queues, second), "the second is admitted", 60, every=0.2)
    assert is_true(plane.client.get(TRAIN_JOB, first, queues), "Complete")
    (template,) = plane.client.get(JOB_SET, first, queues)["spec"]["replicatedJobs"]
    assert template["template"]["spec"]["completions"] == 2
    wait_until(lambda: is_true(plane.client.get(TRAIN_JOB, second, queues), "Complete"), "the second ends", 60)


def run_of(plane: Plane, space: str, before: str) -> str:
    """Wait until a run is complete and the one before is gone with its runtime; return its name."""

    def names(kind: str) -> list[str]:
        return [each["metadata"]["name"] for each in plane.client.objects(kind, space)]

    def is_done() -> bool:
        found = plane.client.objects(TRAIN_JOB, space)
        return len(found) == 1 and found[0]["metadata"]["name"] != before and is_true(found[0], "Complete")

    wait_until(is_done, "one run, which is complete", 120)
    wait_until(lambda: names(RUNTIME) == names(TRAIN_JOB) == names(JOB_SET), "one runtime and one JobSet", 60)
    return names(TRAIN_JOB)[0]


def train(command: str) -> dict[str, Object]:
    return {"train": spec("Job", "train", image="train:1", nodes=2, groups="trainJob", command=[command])}


def test_argocd_runs_a_train_job_once_for_each_spec(
    plane: Plane, argocd: ArgoCD, groups: GroupControllers, team: Team, repository: Repository
) -> None:
    groups.start_trainer()
    plane.make_namespace(team.space)
    set_course(plane.client, team.space, Course(delay=2))
    team.gitops = dict(ARGOCD)
    name, before = team.name(team.space, "train"), ""
    for command in ("first", "second"):
        team.specs = train(command)
        files = team.files()
        revision = repository.commit(files)
        bootstrap_argocd(plane, team, files)
        wait_application(plane, argocd, name, revision)
        before = run_of(plane, team.space, before)
        argocd.wait(name, lambda app: app["status"].get("health", {}).get("status") == "Healthy", "healthy")
        mark = plane.audit.mark()
        for _ in range(ROUNDS):
            argocd.refresh(name)
            argocd.wait_synced(name, revision)
        assert plane.audit.writes_since(mark, namespace=team.space, user=argocd.user) == []
    remove_applications(plane, argocd, team.environment)


def test_flux_runs_a_train_job_once_for_each_spec(
    plane: Plane, flux: Flux, groups: GroupControllers, team: Team
) -> None:
    groups.start_trainer()
    team.url = flux.url(team.environment)
    team.gitops = {**FLUX, "tenancy": {**TENANCY, "serviceAccount": "deployer"}}
    plane.make_namespace(team.space)
    set_course(plane.client, team.space, Course(delay=2))
    name, before = team.name(team.space, "train"), ""
    user = f"system:serviceaccount:{team.space}:deployer"
    # Without the option, Flux asks about the TrainJob first, and the webhook refuses it.
    with flux.with_options(["--custom-apply-stage-kinds=trainer.kubeflow.org/TrainingRuntime"]):
        for command in ("first", "second"):
            team.specs = train(command)
            revision = sync_flux(plane, flux, team, team.files())
            flux.wait_ready(name, revision, namespace=team.space)
            before = run_of(plane, team.space, before)
            mark = plane.audit.mark()
            for _ in range(ROUNDS):
                flux.fetch(KUSTOMIZATION, name, team.space)
                flux.wait_ready(name, revision, namespace=team.space)
            assert plane.audit.writes_since(mark, namespace=team.space, user=user) == []
