"""Finished work and GitOps: nothing is run again, nothing comes back, and a change touches what it means to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from kaigen.pipeline.result import Compiled
from tests.cluster.apps import CLAIM, JOB, POD, add_gpu_node, compiled, demo_specs, find, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.reaper import ACCOUNT, install_access, run_to_end
from tests.cluster.syncers import Syncer, make_syncer
from tests.cluster.team import changed, named

RECONCILIATIONS = 10
VOLUME = "v1/PersistentVolume"


@pytest.fixture(params=["argocd", "flux"])
def syncer(request: pytest.FixtureRequest, plane: Plane, namespace: str, tmp_path: Path) -> Iterator[Syncer]:
    """Argo CD, then Flux; what it syncs is taken from it at the end."""
    found = make_syncer(request, request.param, plane, namespace, tmp_path)
    add_gpu_node(plane)
    yield found
    for app in list(found.synced):
        found.remove(app)


def uids(plane: Plane, kind: str, namespace: str) -> dict[str, str]:
    """What is there and stays there: names and uids."""
    return {
        found["metadata"]["name"]: found["metadata"]["uid"]
        for found in plane.client.objects(kind, namespace)
        if "deletionTimestamp" not in found["metadata"]
    }


def reap(plane: Plane, namespace: str) -> None:
    """Do what a reaper does: delete the pods that are finished."""
    for pod in plane.client.objects(POD, namespace):
        if pod["status"]["phase"] in {"Succeeded", "Failed"}:
            plane.client.delete(POD, pod["metadata"]["name"], namespace)
            plane.client.wait_gone(POD, pod["metadata"]["name"], namespace)


@pytest.mark.promise("AI Operator", "Manages the lifecycle of resources")
@pytest.mark.promise("Koldun", "Garbage collection when top level resources are deleted")
def test_finished_work_is_left_alone_and_a_change_is_one_new_run(
    plane: Plane, syncer: Syncer, namespace: str, tmp_path: Path
) -> None:
    specs = demo_specs()
    model, first_spec = specs["qwen"], specs["finetune"]
    second_spec = named(first_spec, "second")
    resting = changed(named(model, "resting"), store={"bucket": {"uri": f"s3://models/{namespace}"}})

    def apps(*found: Object) -> dict[str, Compiled]:
        return compiled(tmp_path / "specs", [*found, resting], namespace)

    before = apps(model, first_spec, second_spec)
    names = {app: job_name(item) for app, item in before.items()}
    syncer.publish(before)
    for name in names.values():
        plane.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete")
    jobs, claims = uids(plane, JOB, namespace), uids(plane, CLAIM, namespace)
    assert set(jobs) == set(names.values())
    bucket = find(before["resting"], "PersistentVolume")["metadata"]["name"]
    assert plane.client.get(VOLUME, bucket)["status"]["phase"] == "Bound"

    # Finished and reaped: nothing is written, run again or created again.
    reap(plane, namespace)
    mark = plane.audit.mark()
    syncer.let_pass(before, RECONCILIATIONS)
    assert syncer.writes(mark) == []
    assert (uids(plane, JOB, namespace), uids(plane, CLAIM, namespace)) == (jobs, claims)
    assert uids(plane, POD, namespace) == {}

    # A changed spec is one new run. The old one goes, the volumes stay, and the others are not touched.
    mark = plane.audit.mark()
    after = apps(model, changed(first_spec, args=["--epochs=2"]), second_spec)
    names["finetune"] = job_name(after["finetune"])
    old = job_name(before["finetune"])
    assert names["finetune"] != old
    syncer.publish(after)
    plane.client.wait_gone(JOB, old, namespace)
    plane.client.wait(JOB, names["finetune"], namespace, partial(is_true, condition="Complete"), "complete")
    assert set(uids(plane, JOB, namespace)) == set(names.values())
    assert uids(plane, CLAIM, namespace) == claims
    assert {write.rpartition("/")[2] for write in syncer.writes(mark)} == {old, names["finetune"]}

    # Without its spec all goes but what is to be kept. The others are not touched.
    reap(plane, namespace)
    mark = plane.audit.mark()
    without = apps(model, second_spec)
    syncer.remove("finetune")
    syncer.publish(without)
    plane.client.wait_gone(JOB, names.pop("finetune"), namespace)
    assert set(uids(plane, JOB, namespace)) == set(names.values())
    assert uids(plane, CLAIM, namespace) == claims, "finetune-output is kept"
    touched = {write.rpartition("/")[2] for write in syncer.writes(mark)}
    assert touched <= {rendered.body["metadata"]["name"] for rendered in after["finetune"].objects}
    policies = plane.client.objects("networking.k8s.io/v1/NetworkPolicy", namespace)
    assert [found["metadata"]["name"] for found in policies] == ["qwen", "resting", names["second"]]
    syncer.let_pass(without, 1)
    assert uids(plane, POD, namespace) == {}

    # A volume that belongs to the cluster goes with its app too.
    syncer.remove("resting")
    plane.client.wait_gone(VOLUME, bucket)


def jobs_of(item: Compiled) -> tuple[Object, Object]:
    """Return the Job that does the work, and the one that creates its volume."""
    found = {rendered.object.role: rendered.body for rendered in item.objects}
    return found["job"], found["job-claim"]


def claim(plane: Plane, namespace: str, item: Compiled, folder: Path) -> str:
    """Run what the pod of the claim Job runs, once Kubernetes has run that pod, and return what it printed."""
    job = jobs_of(item)[1]
    plane.client.wait(JOB, job["metadata"]["name"], namespace, partial(is_true, condition="Complete"), "complete")
    pod = job["spec"]["template"]["spec"]
    arguments = [each.replace("$$", "$") for each in pod["containers"][0]["args"]]
    return run_to_end(plane, namespace, pod["serviceAccountName"], folder, *arguments)


def test_what_has_expired_does_not_come_back(plane: Plane, syncer: Syncer, namespace: str, tmp_path: Path) -> None:
    volume = {"size": "1Gi", "ttl": {"completed": "1s", "failed": "never"}}
    first = spec("Job", "brief", image="registry.example.com/work:1", ttl=0, output={"volume": volume})
    requests = count(101, 2)
    install_access(plane, namespace, {})

    def run(*args: str) -> dict[str, Compiled]:
        """Publish the Job with these arguments, and wait until it has run."""
        apps = compiled(tmp_path / "specs", [changed(first, args=list(args))], namespace)
        revision = syncer.begin(apps)
        syncer.reconcile("brief", next(requests))
        claim(plane, namespace, apps["brief"], tmp_path)
        syncer.wait("brief", revision)
        name = jobs_of(apps["brief"])[0]["metadata"]["name"]
        plane.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete")
        return apps

    def reaped() -> bool:
        run_to_end(plane, namespace, ACCOUNT, tmp_path, "run", "--once")
        return not uids(plane, CLAIM, namespace) and not uids(plane, POD, namespace)

    # The next run keeps a volume that has not expired, and its end starts the clock.
    old = jobs_of(run("one")["brief"])
    (kept,) = uids(plane, CLAIM, namespace).values()
    apps = run("two")
    for job in old:
        plane.client.wait_gone(JOB, job["metadata"]["name"], namespace)
    found = plane.client.get(CLAIM, "brief-output", namespace)["metadata"]
    name = jobs_of(apps["brief"])[0]["metadata"]["name"]
    assert (found["uid"], found["annotations"]["kaigen.dev/job"]) == (kept, name)
    assert "deletionTimestamp" not in found

    # The pods and the volume are deleted. The Jobs stay, so nothing is run or created again.
    wait_until(reaped, "pods and volume are reaped")
    jobs, mark = uids(plane, JOB, namespace), plane.audit.mark()
    assert set(jobs) == {job["metadata"]["name"] for job in jobs_of(apps["brief"])}
    syncer.let_pass(apps, RECONCILIATIONS)
    assert syncer.writes(mark) == []
    assert "has ended" in claim(plane, namespace, apps["brief"], tmp_path)
    assert uids(plane, JOB, namespace) == jobs
    assert uids(plane, POD, namespace) == uids(plane, CLAIM, namespace) == {}

    # A changed spec runs once, with a new volume.
    run("three")
    assert kept not in uids(plane, CLAIM, namespace).values()

    # Without its spec everything goes.
    syncer.remove("brief")
    plane.client.wait_gone(CLAIM, "brief-output", namespace)
    kinds = (JOB, POD, "rbac.authorization.k8s.io/v1/Role", "networking.k8s.io/v1/NetworkPolicy")
    wait_until(
        lambda: not any(plane.client.objects(kind, namespace, "app.kubernetes.io/name=brief") for kind in kinds),
        "all is deleted",
    )
