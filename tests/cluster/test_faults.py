"""The API server dies in the middle of an apply: applying again ends where an undisturbed apply ends."""

from __future__ import annotations

import time
from functools import partial
from http.client import HTTPException
from pathlib import Path

import pytest

from tests.cluster.apps import CLAIM, JOB, add_gpu_node, compiled, demo_specs, job_name
from tests.cluster.client import ApiError, Object, is_true
from tests.cluster.plane import Plane
from tests.cluster.syncers import make_syncer

API_SERVER = "kube-apiserver"
COUNT = 6


def named(spec: Object, name: str) -> Object:
    return {**spec, "metadata": {**spec["metadata"], "name": name}}


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


def test_an_apply_that_is_cut_off_is_finished_by_the_next(
    plane: Plane, namespace: str, tmp_path: Path
) -> None:
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
        done = plane.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete", 60)
        assert (done["status"]["succeeded"], done["status"].get("failed", 0)) == (1, 0)


@pytest.mark.parametrize("name", ["argocd", "flux"])
def test_a_sync_that_is_cut_off_is_finished_by_the_syncer(
    plane: Plane, namespace: str, tmp_path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    add_gpu_node(plane)
    specs = demo_specs()
    runs = [named(specs["finetune"], f"finetune-{number}") for number in range(2)]
    apps = compiled(tmp_path / "specs", [specs["qwen"], *runs], namespace)
    syncer = make_syncer(request, name, plane, namespace, tmp_path)
    mark = plane.audit.mark()
    revision = syncer.begin(apps)
    deadline = time.monotonic() + 60
    while not syncer.writes(mark):
        assert time.monotonic() < deadline, "the sync does not begin"
    plane.processes.stop(API_SERVER, kill=True)
    plane.processes.start_again(API_SERVER)
    plane.wait_ready()
    for app in apps:
        syncer.wait(app, revision)
    jobs = sorted(job_name(item) for item in apps.values())
    assert names(plane, JOB, namespace) == jobs
    for job in jobs:
        status = plane.client.get(JOB, job, namespace)["status"]
        assert (status["succeeded"], status.get("failed", 0)) == (1, 0)
    for app in apps:
        syncer.remove(app)
