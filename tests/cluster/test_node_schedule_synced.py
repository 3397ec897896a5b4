"""Schedules on a real node, by the minute, in namespaces of tenants that Argo CD and Flux sync from Git."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from kaigen.config.load import load_config
from kaigen.tenancy.policies import policies
from tests.cluster.apps import JOB, POD, spec
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.audit import Request
from tests.cluster.client import ApiError, Object, is_true
from tests.cluster.flux import KUSTOMIZATION, Flux
from tests.cluster.gated import Cluster, WithArgoCD, WithFlux
from tests.cluster.images import BASE
from tests.cluster.live import call
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node_schedule import minute
from tests.cluster.test_schedules import CRON_JOB

pytestmark = pytest.mark.engine

FITTING = {"forbid": "Forbid", "allow": "Allow", "replace": "Replace"}
"""Apps by what they do when a run is due while the last one still runs."""
GREEDY = "greedy"
"""The app whose pods ask for more than the tenant has."""
APPS = (*FITTING, GREEDY)
SMALL, LARGE = "32Mi", "1Gi"
TENANCY = {"namespaces": True, "defaultDeny": ["Ingress"]}
WORK = "import os, time; time.sleep(1 if int(os.environ['JOB_NAME'].rpartition('-')[2]) % 3 else 90)"
"""Each third run is still there when the next one is due, and does not end before that one is too late to start."""


def job(name: str, memory: str, concurrency: str, *, suspend: bool) -> Object:
    """Return the spec of a Job that is due each minute."""
    return spec(
        "Job",
        name,
        image=BASE,
        command=["python", "-c", WORK],
        resources={"cpu": "10m", "memory": memory},
        schedule={
            "cron": "* * * * *",
            "keep": 20,
            "startingDeadline": "20s",
            "concurrency": concurrency,
            "suspend": suspend,
        },
    )


@pytest.fixture
def clusters(
    node: Node, node_argocd: ArgoCD, node_flux: Flux, node_namespace: str, tmp_path: Path
) -> Iterator[list[Cluster]]:
    """Return a tenant's repository for each of the two controllers, and have the cluster enforce the tenants' rules."""
    found: list[Cluster] = [
        WithArgoCD(node, node_argocd, f"{node_namespace}a", tmp_path / "argocd"),
        WithFlux(node, node_flux, f"{node_namespace}f", tmp_path / "flux"),
    ]
    made: list[Object] = []
    for each in found:
        tenant = {
            "folders": ["specs"],
            "namespaces": [each.team.space],
            "images": [BASE],
            "quota": {"requests.memory": "512Mi"},
        }
        each.team.settings["tenants"] = {f"team-{each.team.environment}": tenant}
        each.team.gitops = {**each.team.gitops, "tenancy": TENANCY}
        each.team.write()
        tenants = load_config(each.team.folder, each.team.environment).tenants
        made += policies(tenants, "kubernetes")
    for body in made:
        node.client.apply(body)
    yield found
    for each in found:
        each.remove()
    for body in made:
        node.client.delete(f"{body['apiVersion']}/{body['kind']}", body["metadata"]["name"])


def of(cluster: Cluster, name: str) -> dict[int, Object]:
    """Return the runs of an app, by the minute at which they were due."""
    found = cluster.node.client.objects(JOB, cluster.team.space)
    return {minute(each): each for each in found if each["metadata"]["name"].startswith(f"{name}-")}


def has_no_runs(cluster: Cluster, name: str) -> bool:
    return not of(cluster, name)


def ended(cluster: Cluster, due: int) -> bool:
    """Return whether the runs of a minute are complete."""
    return all(is_true(of(cluster, name).get(due, {}), "Complete") for name in FITTING)


def syncing(cluster: Cluster, app: str) -> Object:
    """Return the Application or Kustomization of an app."""
    name = cluster.team.name(cluster.team.space, app)
    if isinstance(cluster, WithArgoCD):
        return cluster.node.client.find(APPLICATION, name, cluster.argocd.namespace) or {}
    assert isinstance(cluster, WithFlux)
    return cluster.node.client.find(KUSTOMIZATION, name, cluster.flux.namespace) or {}


def state(cluster: Cluster, app: str) -> str:
    """Return what the controller says of an app: `Synced`, or something else."""
    status = syncing(cluster, app).get("status", {})
    if isinstance(cluster, WithArgoCD):
        is_running = status.get("operationState", {}).get("phase") == "Running"
        return "Running" if is_running else str(status.get("sync", {}).get("status", ""))
    ready = "".join(each["status"] for each in status.get("conditions", []) if each["type"] == "Ready")
    # While Flux compares, `Ready` is unknown.
    return "Synced" if ready in ("True", "Unknown") else f"Ready is {ready}"


def is_comparison(request: Request, space: str) -> bool:
    """Return whether Flux compared a CronJob in a namespace with Git: it applies it without effect."""
    return (
        request.user == Flux.user
        and (request.resource, request.namespace) == ("cronjobs", space)
        and request.verb == "patch"
        and "dryRun=All" in request.uri
    )


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def is_live(cluster: Cluster, *, suspend: bool) -> bool:
    """Return whether the cluster has all schedules as they are in Git."""
    crons = [cluster.node.client.find(CRON_JOB, name, cluster.team.space) for name in APPS]
    return all(cron is not None and cron["spec"]["suspend"] is suspend for cron in crons)


def is_synced(cluster: Cluster) -> bool:
    return all(state(cluster, app) == "Synced" for app in APPS)


def publish(clusters: list[Cluster], *, suspend: bool = False) -> dict[str, int]:
    """Commit the schedules; return a mark of the audit log for each namespace, from when the apps are synced."""
    specs = [job(name, SMALL, concurrency, suspend=suspend) for name, concurrency in FITTING.items()]
    for cluster in clusters:
        cluster.publish(*specs, job(GREEDY, LARGE, "Forbid", suspend=suspend))
    marks = {}
    for cluster in clusters:
        space = cluster.team.space
        wait_until(partial(is_live, cluster, suspend=suspend), f"{space} has the schedules", 180)
        wait_until(partial(is_synced, cluster), f"{space} is synced", 60)
        marks[space] = cluster.node.audit.mark()
    return marks


def stays_synced(
    clusters: list[Cluster], marks: dict[str, int], what: str, until: Callable[[Cluster], bool]
) -> dict[str, set[str]]:
    """Wait, and check that the controllers compare meanwhile, see no difference and write nothing.

    Returns:
        The runs that were active in a sample, by namespace.
    """
    began, seen = time.time(), set[str]()
    active: dict[str, set[str]] = {each.team.space: set() for each in clusters}

    def is_over() -> bool:
        for each in clusters:
            runs = each.node.client.objects(JOB, each.team.space)
            seen.update(state(each, app) for app in APPS)
            active[each.team.space] |= {run["metadata"]["name"] for run in runs if run.get("status", {}).get("active")}
        return all(until(each) for each in clusters)

    wait_until(is_over, what, 420, every=1)
    assert seen == {"Synced"}
    for cluster in clusters:
        space, audit = cluster.team.space, cluster.node.audit
        if isinstance(cluster, WithArgoCD):
            assert all(_seconds(syncing(cluster, app)["status"]["reconciledAt"]) > began for app in APPS)
        else:
            compared = {each.name for each in audit.requests(marks[space]) if is_comparison(each, space)}
            assert compared == set(APPS)
        user = ArgoCD.user if isinstance(cluster, WithArgoCD) else Flux.user
        written = audit.writes_since(marks[space], namespace=space, user=user)
        assert [f"{entry.verb} {entry.resource}/{entry.name}" for entry in written] == []
    return active


def reverts_and_prunes(cluster: Cluster) -> bool:
    """Return whether the controller is set to revert changes in the cluster, and to delete what leaves Git."""
    found = syncing(cluster, "forbid")["spec"]
    if isinstance(cluster, WithArgoCD):
        return bool(found["syncPolicy"]["automated"] == {"prune": True, "selfHeal": True})
    return found["prune"] is True  # Flux always reverts changes.


def check_runs(cluster: Cluster, first: int, active: set[str]) -> None:
    """Check which runs there were: one was due while another ran, and one while the schedules were suspended."""
    node, space, last = cluster.node, cluster.team.space, first + 4
    runs = {name: {due: run for due, run in of(cluster, name).items() if first <= due <= last} for name in APPS}
    # A run that is due while the last one runs is left out, runs next to it, or replaces it.
    assert set(runs["forbid"]) == {first, first + 2, last}
    assert set(runs["allow"]) == {first, first + 1, first + 2, last}
    assert set(runs["replace"]) == {first + 1, first + 2, last}
    assert all(is_true(run, "Complete") for name in FITTING for run in runs[name].values())
    assert {f"{name}-{first}" for name in FITTING} <= active
    long, short = runs["allow"][first]["status"], runs["allow"][first + 1]["status"]
    assert long["startTime"] < short["startTime"] < short["completionTime"] < long["completionTime"]
    events = node.client.objects("v1/Event", space)
    left_out = [each["involvedObject"]["name"] for each in events if each["reason"] == "JobAlreadyActive"]
    assert "forbid" in left_out
    assert not {"allow", "replace"} & set(left_out)


def check_rules(cluster: Cluster) -> None:
    """Check that the rules of the tenant apply to pods of schedules."""
    node, team = cluster.node, cluster.team
    labels = node.client.get("v1/Namespace", team.space)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    # The only run of the app never had a pod, so later ones are left out, and the user sees why.
    assert len(of(cluster, GREEDY)) == 1
    assert node.client.objects(POD, team.space, f"app.kubernetes.io/name={GREEDY}") == []
    printed = call(node, "kaigen", "status", "--env", team.environment, folder=team.folder, code=1)
    rows = {line.split()[1]: " ".join(line.split()) for line in printed.splitlines() if line.startswith(team.space)}
    assert "exceeded quota: kaigen, requested: requests.memory=1Gi" in rows[GREEDY], printed
    assert f" progressing {GREEDY}-" in rows[GREEDY]
    assert all(f" Job ready {name}-" in rows[name] for name in FITTING), printed
    # What a user who bypasses kaigen writes into Git is refused with the schedule, before it has a pod.
    cron = node.client.get(CRON_JOB, "forbid", team.space)
    pod = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    for field, value in (("hostNetwork", True), ("containers", [{**pod["containers"][0], "image": "foreign:1"}])):
        template = {"spec": {"template": {"spec": {**pod, field: value}}}}
        other = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "other"},
            "spec": {"schedule": "@daily", "jobTemplate": template},
        }
        with pytest.raises(ApiError, match=r"ValidatingAdmissionPolicy 'kaigen-tenant-team-.*' denied request"):
            node.client.create(other, team.space, dry_run=True)


@pytest.mark.ran("CronJob", by=("node", "argocd", "kustomize-controller"))
def test_apps_stay_synced_while_runs_overlap_are_missed_and_are_refused(clusters: list[Cluster]) -> None:
    node = clusters[0].node
    marks = publish(clusters)
    assert all(reverts_and_prunes(each) for each in clusters)
    first = (int(time.time()) // 60 // 3 + 1) * 3
    active = stays_synced(clusters, marks, "the third minute's runs are complete", lambda each: ended(each, first + 2))
    marks = publish(clusters, suspend=True)
    assert time.time() < 60 * (first + 3), "the suspension was too late"
    late = 60 * (first + 3) + 25
    stays_synced(clusters, marks, "a run was missed", lambda each: time.time() > late)
    marks = publish(clusters)
    assert time.time() < 60 * (first + 4), "the end of the suspension was too late"
    stays_synced(clusters, marks, "runs are complete after the suspension", lambda each: ended(each, first + 4))
    for cluster in clusters:
        check_runs(cluster, first, active[cluster.team.space])
        check_rules(cluster)

    # A suspension by hand does not last, and an app that leaves Git takes its runs with it.
    for cluster in clusters:
        node.client.patch(CRON_JOB, "forbid", cluster.team.space, {"spec": {"suspend": True}})
    for cluster in clusters:
        wait_until(partial(is_live, cluster, suspend=False), "the suspension is reverted", 120)
        cluster.publish(job("allow", SMALL, "Allow", suspend=False))
    for cluster in clusters:
        node.client.wait_gone(CRON_JOB, "forbid", cluster.team.space)
        wait_until(partial(has_no_runs, cluster, "forbid"), "its runs are gone", 60)
