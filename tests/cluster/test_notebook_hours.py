"""Notebooks whose replicas are set in the cluster: what their account may do, and that Argo CD and Flux agree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster.apps import CLAIM, POD, compiled, find, spec
from tests.cluster.client import ApiError, Object, is_true
from tests.cluster.downloader import account_variables
from tests.cluster.jupyter import TOKEN, Jupyter
from tests.cluster.live import call
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.reaper import run_to_end
from tests.cluster.syncers import Syncer, make_syncer

STATEFUL_SET = "apps/v1/StatefulSet"
ACCOUNT = "lab-gate"
RECONCILIATIONS = 4
HOURS = [{"start": "0 8 * * MON-FRI", "end": "0 19 * * MON-FRI", "timeZone": "Europe/Berlin"}]
_PACKAGE = Path(__file__).parents[2] / "runtimes" / "reaper"


@pytest.fixture(params=["argocd", "flux"])
def syncer(request: pytest.FixtureRequest, plane: Plane, namespace: str, tmp_path: Path) -> Iterator[Syncer]:
    """Argo CD, then Flux; what it syncs is taken from it at the end."""
    found = make_syncer(request, request.param, plane, namespace, tmp_path)
    yield found
    for app in list(found.synced):
        found.remove(app)


def notebook() -> Object:
    return spec(
        "Notebook",
        "lab",
        idle={"after": "1h"},
        hours=HOURS,
        storage={"size": "1Gi", "retain": False},
        resources={"cpu": "100m", "memory": "64Mi"},
    )


def replicas(plane: Plane, namespace: str) -> int:
    return int(plane.client.get(STATEFUL_SET, "lab", namespace)["spec"]["replicas"])


def stop_when_idle(plane: Plane, namespace: str, folder: Path, jupyter: Jupyter) -> None:
    """Run what the container of the pod runs, as its account, until the notebook has no replicas."""
    env = account_variables(plane, namespace, ACCOUNT, folder / "account")
    (folder / "token").write_text(TOKEN)
    arguments = [
        "idle",
        "--name=lab",
        "--state=lab-state",
        "--after=1s",
        f"--port={jupyter.port}",
        f"--token-file={folder / 'token'}",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "kaigen_reaper", *arguments],
        env=os.environ | env | {"PYTHONPATH": str(_PACKAGE), "NAMESPACE": namespace},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: replicas(plane, namespace) == 0, "the idle notebook has no replicas")
    finally:
        process.terminate()
        _, printed = process.communicate(timeout=30)
    assert f"StatefulSet {namespace}/lab has 0 replicas" in printed
    assert process.returncode == 0


def test_a_notebook_that_was_idle_stays_stopped_under_gitops_until_somebody_opens_it(
    plane: Plane, syncer: Syncer, namespace: str, tmp_path: Path
) -> None:
    apps = compiled(tmp_path / "specs", [notebook()], namespace)
    syncer.publish(apps)
    plane.client.wait(POD, "lab-0", namespace, lambda pod: is_true(pod, "Ready"), "ready")

    with Jupyter() as jupyter:
        jupyter.kernels = []
        stop_when_idle(plane, namespace, tmp_path, jupyter)
    plane.client.wait_gone(POD, "lab-0", namespace)
    assert plane.client.get(CLAIM, "lab-home", namespace)["status"]["phase"] == "Bound"

    mark = plane.audit.mark()
    syncer.let_pass(apps, RECONCILIATIONS)
    assert syncer.writes(mark) == []
    assert replicas(plane, namespace) == 0
    repository = tmp_path / "repository-of-specs"
    repository.mkdir()
    (repository / "kaigen.yaml").write_text(f"profile: k3s\nnamespace: {namespace}\n")
    (repository / "specs").mkdir()
    (repository / "specs" / "lab.yaml").write_text(yaml.safe_dump(notebook()))
    printed = call(plane, "kaigen", "status", folder=repository)
    assert re.search(rf"{namespace} +lab +Notebook +suspended .* idle, stopped at 20[-0-9]+T[:0-9]+Z", printed), printed

    assert "notebook/lab resumed" in call(plane, "kaigen", "notebook", "resume", "lab", "-n", namespace)
    plane.client.wait(POD, "lab-0", namespace, lambda pod: is_true(pod, "Ready"), "ready")
    syncer.let_pass(apps, RECONCILIATIONS)
    assert replicas(plane, namespace) == 1

    # What the CronJobs of its hours run.
    for action, expected in (("stop", 0), ("start", 1)):
        body = next(each.body for each in apps["lab"].objects if each.body["metadata"]["name"] == f"lab-{action}")
        (container,) = body["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        run_to_end(plane, namespace, ACCOUNT, tmp_path, *container["args"])
        syncer.let_pass(apps, 1)
        assert replicas(plane, namespace) == expected

    # Another change of the spec leaves the replicas alone, too.
    run_to_end(plane, namespace, ACCOUNT, tmp_path, "scale", "--name=lab", "--state=lab-state", "--replicas=0")
    changed = notebook()
    changed["spec"]["resources"]["cpu"] = "200m"
    apps = compiled(tmp_path / "specs", [changed], namespace)
    syncer.publish(apps)
    template = plane.client.get(STATEFUL_SET, "lab", namespace)["spec"]["template"]
    assert template["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    assert replicas(plane, namespace) == 0


def test_the_account_of_a_notebook_may_change_its_replicas_and_nothing_else(
    plane: Plane, namespace: str, tmp_path: Path
) -> None:
    (app,) = compiled(
        tmp_path,
        [
            notebook(),
        ],
        namespace,
    ).values()
    for rendered in app.objects:
        if not rendered.object.test:
            plane.client.apply(rendered.body)
    other = find(app, "StatefulSet")
    plane.client.apply({**other, "metadata": {"name": "other", "namespace": namespace}})
    account = plane.as_service_account(namespace, ACCOUNT)
    change = {"spec": {"replicas": 0}}
    account.patch(STATEFUL_SET, "lab", namespace, change, "scale")
    account.patch("v1/ConfigMap", "lab-state", namespace, {"data": {"stopped": "idle"}})
    for name, subresource in (("lab", ""), ("other", "scale"), ("lab", "status")):
        with pytest.raises(ApiError, match="forbidden"):
            account.patch(STATEFUL_SET, name, namespace, change, subresource)
    for kind in ("v1/Secret", POD, STATEFUL_SET):
        with pytest.raises(ApiError, match="forbidden"):
            account.objects(kind, namespace)
