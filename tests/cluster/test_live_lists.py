"""`kaigen job` on a control plane: what it lists, waits for and deletes; and how the client lists."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import Forbidden
from tests.cluster.apps import CLAIM, JOB
from tests.cluster.client import Object
from tests.cluster.images import BASE
from tests.cluster.live import SMALL, call, objects, start
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.simulate import Course, set_course


def tracked(plane: Plane, kind: str, name: str, namespace: str) -> None:
    """Let an object look as if Argo CD had synced it."""
    change = {"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "app:group/Kind:ns/name"}}}
    plane.client.patch(kind, name, namespace, change)


@pytest.mark.promise("Ephemeral GPU", "`egpu watch NAME`")
@pytest.mark.promise("Ephemeral GPU", "Troubleshooting: why a pod is not scheduled")
def test_jobs_are_listed_watched_and_deleted(plane: Plane, namespace: str) -> None:
    job = partial(call, plane, "kaigen", "job")
    options = ("-n", namespace, "--image", BASE, "--command", "true", *SMALL)
    assert "No Jobs found" in job("list", "-n", namespace)
    printed = job("create", "good", *options, "--wait", "--pvc-ttl", "0", "--ttl", "1h")
    assert "job.batch/good created" in printed
    assert printed.splitlines()[-1] == "[Succeeded] Job completed successfully"
    assert job("watch", "good", "-n", namespace) == "[Succeeded] Job completed successfully\n"
    again = job("create", "good", *options, code=1)
    assert "Job good already exists" in again
    set_course(plane.client, namespace, Course(state="failed", exit_code=7))
    failed = job("create", "bad", *options, "--wait", code=1)
    assert "[Failed]" in failed
    assert "kaigen job logs bad" in failed
    assert "is Pending" in job("create", "slow", *options, "--cpu", "400", "--wait", "--timeout", "1", code=3)
    wait_until(
        lambda: "Insufficient cpu" in job("watch", "slow", "-n", namespace, "--timeout", "1", code=3),
        "the scheduler says why the pod waits",
    )
    table = [line.split() for line in job("list", "-n", namespace).splitlines()]
    assert [row[:3] for row in table] == [
        ["NAME", "PHASE", "GPU"],
        ["bad", "Failed", "0"],
        ["good", "Succeeded", "0"],
        ["slow", "Pending", "0"],
    ]
    assert job("list", "-n", namespace, "-o", "name").split() == [f"job.batch/{n}" for n in ("bad", "good", "slow")]
    assert [line.split()[:2] for line in job("list", "-A").splitlines() if namespace in line] == [
        [namespace, name] for name in ("bad", "good", "slow")
    ]
    assert json.loads(job("get", "good", "-n", namespace, "-o", "json"))["metadata"]["name"] == "good"
    assert "Artifact:   /artifacts/output.json" in job("get", "good", "-n", namespace)
    assert 'Job "none" not found' in job("get", "none", "-n", namespace, code=1)
    wait_until(lambda: "SuccessfulCreate" in job("events", "good", "-n", namespace), "the event of the pod is recorded")
    policies = "networking.k8s.io/v1/NetworkPolicy"
    assert len(plane.client.objects(policies, namespace)) == 3
    job("delete", "slow", "-n", namespace)
    job("delete", "bad", "-n", namespace, "--keep-pvc")
    wait_until(lambda: len(plane.client.objects(policies, namespace)) == 1, "policies go with their Jobs")
    assert objects(plane, namespace) >= {"Job/good", "PersistentVolumeClaim/artifacts-bad"}
    assert "PersistentVolumeClaim/artifacts-slow" not in objects(plane, namespace)
    tracked(plane, JOB, "good", namespace)
    assert "managed by Argo CD" in job("delete", "good", "-n", namespace, code=1)


@pytest.mark.promise("Ephemeral GPU", "`egpu cleanup`, also with `--namespace`, deletes PVCs where the TTL has expired")
def test_volumes_are_cleaned_up_when_their_time_is_over(plane: Plane, namespace: str) -> None:
    job = partial(call, plane, "kaigen", "job")
    options = ("-n", namespace, "--image", BASE, "--command", "true", *SMALL, "--wait")
    for name, ttl in (("over", "0"), ("later", "1h"), ("never", "never"), ("synced", "0")):
        job("create", name, *options, "--pvc-ttl", ttl)
    job("create", "kept", *options)
    tracked(plane, CLAIM, "artifacts-synced", namespace)
    set_course(plane.client, namespace, Course(state="ready"))
    job("create", "used", *options, "--pvc-ttl", "0", "--timeout", "2", code=3)
    plane.client.create(_user_pod("artifacts-used"), namespace)
    before = objects(plane, namespace)
    dry = job("cleanup", "-n", namespace, "--dry-run", "-v")
    assert "persistentvolumeclaim/artifacts-over deleted" in dry
    assert "Summary: 1 PVC(s) deleted, 4 skipped" in dry
    for reason in ("its TTL ends at", "it never expires", "it is managed by Argo CD", "Job used has not ended"):
        assert reason in dry
    assert objects(plane, namespace) == before
    assert "Summary: 1 PVC(s) deleted, 4 skipped" in job("cleanup", "-n", namespace)
    gone = before - objects(plane, namespace)
    assert {each.rpartition("-")[0] for each in gone} == {"PersistentVolumeClaim/artifacts", "Pod/over"}


@pytest.mark.promise("Ephemeral GPU", "Job creation: if the PVC exists, its status is checked")
def test_what_is_being_deleted_does_not_exist(plane: Plane, namespace: str, tmp_path: Path) -> None:
    job = partial(call, plane, "kaigen", "job")
    options = ("-n", namespace, "--image", BASE, "--command", "true", *SMALL)
    job("create", "again", *options, "--wait")
    claim = plane.client.get(CLAIM, "artifacts-again", namespace)
    held = {"metadata": {"finalizers": [*claim["metadata"].get("finalizers", ()), "test.kaigen.dev/held"]}}
    plane.client.patch(CLAIM, "artifacts-again", namespace, held)
    job("delete", "again", "-n", namespace)
    assert "deletionTimestamp" in plane.client.get(CLAIM, "artifacts-again", namespace)["metadata"]
    named = ("-n", namespace, "--pvc-name=artifacts-again")
    assert "is being deleted" in job("cp", ".", "again:/artifacts", *named, folder=tmp_path, code=1)
    with start(plane, "kaigen", "job", "create", "again", *options, "-v") as process:
        assert process.stdout is not None
        waits = "persistentvolumeclaim/artifacts-again is being deleted; waiting until it is gone"
        assert any(waits in line for line in iter(process.stdout.readline, ""))
        plane.client.patch(CLAIM, "artifacts-again", namespace, {"metadata": {"finalizers": None}})
        printed = process.communicate(timeout=60)[0]
    assert "persistentvolumeclaim/artifacts-again created" in printed
    assert plane.client.get(CLAIM, "artifacts-again", namespace)["metadata"]["uid"] != claim["metadata"]["uid"]


def test_the_job_of_a_spec_is_the_one_that_runs(plane: Plane, namespace: str) -> None:
    job = partial(call, plane, "kaigen", "job")
    for component in ("claim", "build", "run", "upload"):
        plane.client.create(_job_of("photos", component), namespace)
    assert json.loads(job("get", "photos", "-n", namespace, "-o", "json"))["metadata"]["name"] == "photos-run"
    assert job("list", "-n", namespace, "-o", "name") == "job.batch/photos-run\n"
    plane.client.delete(JOB, "photos-run", namespace)
    assert 'Job "photos" not found' in job("get", "photos", "-n", namespace, code=1)


@pytest.mark.promise("Ephemeral GPU", "`egpu cleanup`, also with `--namespace`, deletes PVCs where the TTL has expired")
def test_a_volume_is_gone_with_the_pods_that_have_ended(plane: Plane, namespace: str) -> None:
    job = partial(call, plane, "kaigen", "job")
    job("create", "over", "-n", namespace, "--image", BASE, "--command", "true", *SMALL, "--wait", "--pvc-ttl", "0")
    pods = plane.client.objects("v1/Pod", namespace)
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"]
    assert "Summary: 1 PVC(s) deleted" in job("cleanup", "-n", namespace)
    wait_until(lambda: "PersistentVolumeClaim/artifacts-over" not in objects(plane, namespace), "the volume is gone")
    assert plane.client.objects("v1/Pod", namespace) == []


def test_a_volume_that_outlives_its_run_is_known_to_the_reaper(plane: Plane, namespace: str) -> None:
    job = partial(call, plane, "kaigen", "job")
    options = ("-n", namespace, "--image", BASE, "--command", "true", *SMALL)
    job("create", "brief", *options, "--pvc-ttl", "24h")
    job("create", "kept", *options)
    labels = {name: plane.client.get(JOB, name, namespace)["metadata"]["labels"] for name in ("brief", "kept")}
    assert labels["brief"]["kaigen.dev/expires"] == "true"
    assert "kaigen.dev/expires" not in labels["kept"]


@pytest.mark.promise("Ephemeral GPU", "After the job was deleted, the PVC is deleted when its TTL expires")
def test_a_volume_whose_job_was_deleted_expires(plane: Plane, namespace: str) -> None:
    job = partial(call, plane, "kaigen", "job")
    options = ("-n", namespace, "--image", BASE, "--command", "true", *SMALL)
    job("create", "over", *options, "--pvc-ttl", "1", "--wait")
    job("create", "later", *options, "--pvc-ttl", "1h", "--wait")
    job("create", "kept", *options, "--wait")
    for name in ("over", "later", "kept"):
        job("delete", name, "-n", namespace, "--keep-pvc")
    wait_until(lambda: "1 PVC(s) deleted, 1 skipped" in job("cleanup", "-n", namespace), "the time of one is over")
    wait_until(
        lambda: objects(plane, namespace) == {f"PersistentVolumeClaim/artifacts-{name}" for name in ("later", "kept")},
        "its volume is gone",
    )
    # The time of a volume that a new Job uses begins with the end of that Job.
    job("create", "later", *options, "--pvc-ttl", "1h")
    claim = plane.client.get(CLAIM, "artifacts-later", namespace)
    assert "kaigen.dev/expires-at" not in claim["metadata"]["annotations"]
    # A volume without a Job is deleted by its name.
    assert "persistentvolumeclaim/artifacts-kept deleted" in job("delete", "kept", "-n", namespace)
    assert 'Job "kept" not found' in job("delete", "kept", "-n", namespace, code=1)


def test_lists_are_complete_and_names_of_secrets_have_no_values(plane: Plane, namespace: str) -> None:
    for number in range(501):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}}
        plane.client.create(body, namespace)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": "value"}}
    plane.client.create(secret, namespace)
    cluster = Cluster(str(plane.kubeconfig))
    found = cluster.objects_of_type("ConfigMap", namespace)
    assert {item["metadata"]["name"] for item in found} == {"kube-root-ca.crt", *(f"c{n}" for n in range(501))}
    assert {item["kind"] for item in found} == {"ConfigMap"}
    assert cluster.names_of_type("Secret", namespace) == ["s"]
    assert cluster.has("Secret", namespace, "s")
    assert cluster.has("Namespace", "", namespace)
    assert cluster.has("CSIDriver.storage.k8s.io", "", "sim.kaigen.dev")
    assert not cluster.has("Secret", namespace, "t")
    assert not cluster.has("Secret.example.com", namespace, "s")
    account = plane.as_service_account(namespace, "default")
    user = Cluster(str(plane.kubeconfig_of(account, "lists")))
    with pytest.raises(Forbidden, match="secrets is forbidden"):
        user.names_of_type("Secret", namespace)
    with pytest.raises(Forbidden):
        user.has("Secret", namespace, "s")


def _job_of(app: str, component: str) -> Object:
    """Return a Job of an app from Git."""
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/managed-by": "kaigen",
        "app.kubernetes.io/component": component,
    }
    pod = {"restartPolicy": "Never", "containers": [{"name": component, "image": BASE, "command": ["true"]}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{app}-{component}", "labels": labels},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }


def _user_pod(claim: str) -> Object:
    container = {"name": "main", "image": BASE, "securityContext": _CONTAINER}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    spec = {"containers": [container], "volumes": volumes, "securityContext": _POD}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": spec}


_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_POD = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
