"""A fault in the middle of an apply or a sync: when it is over, all is there, and nothing has run twice."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from pathlib import Path

import pytest

from kaigen.gitops.health import CLAIM_HEALTH, CLAIM_HEALTH_KEY
from tests.cluster.apps import CLAIM, JOB, POD, add_gpu_node, compiled, demo_specs, job_name
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import ApiError, Object, is_true
from tests.cluster.faults import slow, webhook_down
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.syncers import Syncer, make_syncer
from tests.cluster.team import named

API_SERVER = "kube-apiserver"
COUNT = 6

Begin = Callable[[], str]
"""Begins a sync and gives its revision."""


def names(plane: Plane, kind: str, namespace: str) -> list[str]:
    return sorted(found["metadata"]["name"] for found in plane.client.objects(kind, namespace))


def apply_until_done(plane: Plane, bodies: list[Object], kill_at: int) -> int:
    """Apply objects again and again, from the first on, until it worked; kill the API server on the way.

    Args:
        plane: the plane.
        bodies: the objects.
        kill_at: after how many of them the API server is killed, once.

    Returns:
        How many attempts failed.
    """
    failures = 0
    deadline = time.monotonic() + 60
    while True:
        try:
            for number, body in enumerate(bodies):
                if number == kill_at and not failures:
                    plane.processes.stop(API_SERVER, kill=True)
                plane.client.apply(body)
            return failures
        except (OSError, HTTPException, ApiError):
            assert time.monotonic() < deadline, "the API server did not come back"
            if not failures:
                plane.processes.start_again(API_SERVER)
                plane.wait_ready()
            failures += 1
            time.sleep(0.1)


def test_an_apply_that_is_cut_off_is_finished_by_the_next(plane: Plane, namespace: str, tmp_path: Path) -> None:
    add_gpu_node(plane)
    specs = demo_specs()
    runs = [named(specs["finetune"], f"finetune-{number}") for number in range(COUNT)]
    apps = compiled(tmp_path / "specs", [specs["qwen"], *runs], namespace)
    bodies = [rendered.body for item in apps.values() for rendered in item.objects]
    jobs = sorted(job_name(item) for item in apps.values())

    assert apply_until_done(plane, bodies, len(bodies) // 2) >= 1
    assert names(plane, JOB, namespace) == jobs
    assert names(plane, CLAIM, namespace) == sorted(
        body["metadata"]["name"] for body in bodies if body["kind"] == "PersistentVolumeClaim"
    )
    for name in jobs:
        done = plane.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete")
        assert (done["status"]["succeeded"], done["status"].get("failed", 0)) == (1, 0)


def killed(plane: Plane, syncer: Syncer, begin: Begin) -> str:
    """The API server dies when the first object has been written."""
    mark = plane.audit.mark()
    revision = begin()
    wait_until(lambda: bool(syncer.writes(mark)), "the sync begins")
    plane.processes.stop(API_SERVER, kill=True)
    plane.processes.start_again(API_SERVER)
    plane.wait_ready()
    return revision


def late(plane: Plane, syncer: Syncer, begin: Begin) -> str:
    """etcd answers late for as long as the sync takes."""
    with slow(plane):
        wait_until(lambda: seconds_of_a_write(plane, syncer.namespace) > 0.3, "etcd is slow", 20)
        revision = begin()
        for app in list(syncer.synced):
            syncer.wait(app, revision)
        wait_until(lambda: seconds_of_a_write(plane, syncer.namespace) > 0.3, "etcd is still slow", 20)
    return revision


def seconds_of_a_write(plane: Plane, namespace: str) -> float:
    """How long the API server takes to change something."""
    labels = {"probe": uuid.uuid4().hex}
    began = time.monotonic()
    plane.client.patch("v1/Namespace", namespace, "", {"metadata": {"labels": labels}})
    return time.monotonic() - began


def refused(plane: Plane, syncer: Syncer, begin: Begin) -> str:
    """Reject every Job until the webhook is removed. Argo CD has kaigen's health checks of claims."""
    if syncer.user == ArgoCD.user:
        plane.client.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "argocd-cm", "namespace": "argocd"},
                "data": {CLAIM_HEALTH_KEY: CLAIM_HEALTH},
            },
            manager="kaigen",
        )
    mark = plane.audit.mark()
    with webhook_down(plane, syncer.namespace):
        revision = begin()

        def seen() -> bool:
            return any(
                entry.user == syncer.user and entry.resource == "jobs" and entry.code == 500
                for entry in plane.audit.requests(mark)
            )

        wait_until(seen, "a Job of the sync is refused")
        assert names(plane, JOB, syncer.namespace) == []
    return revision


@pytest.mark.parametrize("fault", [killed, late, refused])
@pytest.mark.parametrize("name", ["argocd", "flux"])
def test_a_sync_that_is_disturbed_is_finished_by_the_syncer(
    plane: Plane,
    namespace: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    name: str,
    fault: Callable[[Plane, Syncer, Begin], str],
) -> None:
    add_gpu_node(plane)
    specs = demo_specs()
    runs = [named(specs["finetune"], f"finetune-{number}") for number in range(2)]
    apps = compiled(tmp_path / "specs", [specs["qwen"], *runs], namespace)
    syncer = make_syncer(request, name, plane, namespace, tmp_path)
    revision = fault(plane, syncer, partial(syncer.begin, apps))
    for app in apps:
        syncer.wait(app, revision)
    jobs = sorted(job_name(item) for item in apps.values())
    assert names(plane, JOB, namespace) == jobs
    assert len(names(plane, POD, namespace)) == len(jobs)
    for job in jobs:
        status = plane.client.get(JOB, job, namespace)["status"]
        assert (status["succeeded"], status.get("failed", 0)) == (1, 0)
    for app in apps:
        syncer.remove(app)
