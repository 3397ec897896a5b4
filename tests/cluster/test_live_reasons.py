"""What is missing is named within ten seconds by `create --wait`, `watch` and `status`, and so is what failed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.apps import CLAIM, JOB, POD, spec
from tests.cluster.client import Object
from tests.cluster.images import BASE
from tests.cluster.live import SMALL, call, start
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.simulate import Course, pod_spec, set_course

NAMED_S = 10
"""Seconds within which a command names what is missing."""
NO_CLASS = 'storageclass.storage.k8s.io "absent" not found'
NO_RUNTIME = 'FailedCreate: pod rejected: RuntimeClass "absent" not found'
RUNTIME_CLASS = "node.k8s.io/v1/RuntimeClass"
NO_IMAGE = (
    'failed to pull and unpack image "registry.invalid/absent:1": failed to resolve reference '
    '"registry.invalid/absent:1": registry.invalid/absent:1: not found'
)
"""As the kubelet 1.36 writes it with containerd 2."""
NO_SECRET = 'secret "hf-token" not found'
WORK = ("--image", BASE, "--command", "true", *SMALL)


def named(
    plane: Plane, text: str, *words: str, folder: Path | None = None, meanwhile: Callable[[], object] = lambda: None
) -> None:
    """Start a command, and expect a line with a text in time.

    Args:
        plane: the cluster.
        text: the text.
        words: the command.
        folder: where it runs.
        meanwhile: what then happens in the cluster; the time begins after it.

    Raises:
        AssertionError: there is none; the text is what it printed.
    """
    printed = ""
    with start(plane, *words, folder=folder) as process, ThreadPoolExecutor(1) as pool:
        assert process.stdout is not None
        stdout = process.stdout

        def read() -> bool:
            nonlocal printed
            for line in stdout:
                printed += line
                if text in line:
                    return True
            return False

        reading = pool.submit(read)
        meanwhile()
        begin = time.monotonic()
        while not reading.done() and time.monotonic() - begin < NAMED_S:
            time.sleep(0.05)
        process.kill()
        assert reading.result(), f"{' '.join(words)}: {text} is not in\n{printed}"


def job_of(name: str, **spec: Any) -> Object:
    """Return a Job of an app from Git."""
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "kaigen"}
    body = {**pod_spec(), "restartPolicy": "Never", **spec}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {"backoffLimit": 2, "template": {"metadata": {"labels": labels}, "spec": body}},
    }


def pod_of(plane: Plane, namespace: str, job: str) -> Object:
    """Return the newest pod of a Job once its first init container runs."""

    def find() -> Object | None:
        pods = plane.client.objects(POD, namespace, f"batch.kubernetes.io/job-name={job}")
        running = [pod for pod in pods if "running" in str(pod["status"].get("initContainerStatuses"))]
        return running[-1] if running else None

    wait_until(lambda: find() is not None, f"a pod of {job} runs")
    found = find()
    assert found is not None
    return found


def set_state(plane: Plane, pod: Object, state: Object, **status: Any) -> None:
    """Write the state of the first init container, as a kubelet does; the others wait for it."""
    first, *others = pod["status"]["initContainerStatuses"]
    states = [{**first, "state": state}, *({**each, "state": {"waiting": {"reason": "Held"}}} for each in others)]
    change = {"status": {"initContainerStatuses": states, **status}}
    plane.client.patch(POD, pod["metadata"]["name"], pod["metadata"]["namespace"], change, "status")


@pytest.fixture
def held(plane: Plane, namespace: str) -> str:
    """A namespace whose pods stay in their first init container."""
    set_course(plane.client, namespace, Course(hold_init="*"))
    return namespace


def test_a_missing_storage_class_is_named_and_ends_what_waits_for_it(plane: Plane, namespace: str) -> None:
    job = ("kaigen", "job")
    absent = ("-n", namespace, "--storage-class", "absent")
    named(plane, NO_CLASS, *job, "create", "train", *absent, *WORK, "--wait")
    named(plane, NO_CLASS, *job, "watch", "train", "-n", namespace)
    assert NO_CLASS in call(plane, *job, "get", "train", "-n", namespace)
    assert NO_CLASS in call(plane, *job, "list", "-n", namespace, "-o", "wide")
    printed = call(plane, *job, "logs", "train", "-n", namespace, code=1)
    assert f"has not started: ProvisioningFailed: PersistentVolumeClaim artifacts-train: {NO_CLASS}" in printed
    assert f"hint: wait for it with: kaigen job logs train -f -n {namespace}" in printed
    begin = time.monotonic()
    printed = call(plane, "egpu", "copy-file", "early", "http://127.0.0.1:1/a.jpg", *absent, code=3)
    assert time.monotonic() - begin < NAMED_S
    assert re.search(f"error: pod copy-file-early-[0-9a-f]+ does not start: ProvisioningFailed: .*{NO_CLASS}", printed)
    assert "kubectl describe" not in printed
    assert "hint: list those of the cluster: kubectl get storageclass; and name one with --storage-class" in printed
    # A Job without a pod, as a syncer leaves it: the pod was refused.
    plane.client.create(job_of("refused", runtimeClassName="absent"), namespace)
    named(plane, NO_RUNTIME, "egpu", "watch", "refused", "-n", namespace)
    printed = call(plane, "egpu", "logs", "refused", "-n", namespace, code=1)
    assert f"Job refused has no pods yet: {NO_RUNTIME}" in printed
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "absent"}}
    plane.client.create(job_of("lost", volumes=[volume]), namespace)
    named(plane, 'persistentvolumeclaim "absent" not found', *job, "watch", "lost", "-n", namespace)
    plane.client.create(job_of("open", securityContext={}), namespace)
    named(plane, 'violates PodSecurity "restricted:latest"', *job, "watch", "open", "-n", namespace)


def test_a_missing_input_image_and_secret_are_named(plane: Plane, held: str) -> None:
    own = ("-n", held)
    named(
        plane,
        "[Pending] waits for /artifacts/input.jpg",
        *("kaigen", "job", "create", "photo", *own, "--weights", "/artifacts/w.safetensors", *SMALL, "--wait"),
    )
    named(plane, "[Pending] waits for /artifacts/input.jpg", "kaigen", "job", "watch", "photo", *own)
    pod = pod_of(plane, held, "photo")
    set_state(plane, pod, {"waiting": {"reason": "ErrImagePull", "message": NO_IMAGE}})
    named(plane, f"[Pending] ErrImagePull: {NO_IMAGE}", "kaigen", "job", "watch", "photo", *own)
    back_off = f'Back-off pulling image "registry.invalid/absent:1": ErrImagePull: {NO_IMAGE}'
    set_state(plane, pod, {"waiting": {"reason": "ImagePullBackOff", "message": back_off}})
    named(plane, f"[Pending] ErrImagePull: {NO_IMAGE}", "kaigen", "job", "watch", "photo", *own)
    set_state(plane, pod, {"waiting": {"reason": "CreateContainerConfigError", "message": NO_SECRET}})
    named(plane, f"[Pending] CreateContainerConfigError: {NO_SECRET}", "kaigen", "job", "watch", "photo", *own)


REFUSED = "error: timm/resnet50.tv_in1k is not on https://hub.example, or HF_TOKEN is invalid (status 401)\n"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"waiting": {"reason": "ErrImagePull", "message": NO_IMAGE}}, f"[Pending] ErrImagePull: {NO_IMAGE}"),
        (
            {"waiting": {"reason": "CreateContainerConfigError", "message": NO_SECRET}},
            f"[Pending] CreateContainerConfigError: {NO_SECRET}",
        ),
        (
            {"terminated": {"exitCode": 10, "reason": "Error", "message": REFUSED}},
            "[Failed] init container fetch-model: exit code 10: timm/resnet50.tv_in1k is not on https://hub.example",
        ),
    ],
)
def test_create_names_what_is_missing_while_it_waits(plane: Plane, held: str, state: Object, expected: str) -> None:
    phase = {"phase": "Failed"} if "terminated" in state else {}
    named(
        plane,
        expected,
        *("kaigen", "job", "create", "photo", "-n", held, *SMALL, "--ttl", "1h", "--wait"),
        meanwhile=lambda: set_state(plane, pod_of(plane, held, "photo"), state, **phase),
    )


def test_a_missing_runtime_class_is_named_by_create(plane: Plane, namespace: str, tmp_path: Path) -> None:
    settings = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Config", "profile": "k3s", "namespace": namespace}
    (tmp_path / "kaigen.yaml").write_text(yaml.safe_dump(settings))
    words = ("create", "gpu", "-n", namespace, "--gpu", "1", "--storage-class", "standard", *WORK, "--wait")
    # The cluster of the tests has the class.
    kept = plane.client.get(RUNTIME_CLASS, "nvidia", "")
    plane.client.delete(RUNTIME_CLASS, "nvidia", "")
    plane.client.wait_gone(RUNTIME_CLASS, "nvidia", "")
    try:
        named(plane, 'FailedCreate: pod rejected: RuntimeClass "nvidia" not found', "egpu", *words, folder=tmp_path)
    finally:
        plane.client.create(
            {key: kept[key] for key in ("apiVersion", "kind", "handler")} | {"metadata": {"name": "nvidia"}}, ""
        )


def test_a_notebook_that_cannot_start_is_suspended_and_no_hint_leads_to_its_pod(
    plane: Plane, namespace: str, tmp_path: Path
) -> None:
    storage = {"size": "1Gi", "storageClassName": "absent"}
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump(spec("Notebook", "lab", storage=storage)))
    settings = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Config", "profile": "k3s", "namespace": namespace}
    (tmp_path / "kaigen.yaml").write_text(yaml.safe_dump(settings))
    begin = time.monotonic()
    opening = ("notebook", "open", "-f", "lab.yaml", "--no-browser")
    printed = call(plane, "kaigen", *opening, folder=tmp_path, code=3)
    assert time.monotonic() - begin < NAMED_S
    assert "error: Notebook lab does not start: ProvisioningFailed" in printed
    assert NO_CLASS in printed
    assert "Notebook lab suspended; its files stay" in printed
    assert "kubectl describe" not in printed
    assert plane.client.get("apps/v1/StatefulSet", "lab", namespace)["spec"]["replicas"] == 0


def test_the_message_of_an_init_container_is_why_a_job_failed(plane: Plane, held: str) -> None:
    job = partial(call, plane, "kaigen", "job")
    own = ("-n", held)
    job("create", "photo", *own, *SMALL, "--ttl", "1h")
    pod = pod_of(plane, held, "photo")
    ended = {"exitCode": 10, "reason": "Error", "message": f"starting\n{REFUSED}"}
    set_state(plane, pod, {"terminated": ended}, phase="Failed")
    why = "init container fetch-model: exit code 10: timm/resnet50.tv_in1k is not on https://hub.example"
    printed = job("watch", "photo", *own, code=1)
    assert f"[Failed] {why}" in printed
    assert f"hint: read what it printed: kaigen job logs photo -c fetch-model -n {held}" in printed
    assert why in job("get", "photo", *own)
    assert why in job("list", *own, "-o", "wide")
    for options in ((), ("-f",)):
        printed = job("logs", "photo", *own, *options, code=1)
        assert f'container "run" did not run: {why}' in printed
        assert "PodInitializing" not in printed
        assert f"kaigen job logs photo -c fetch-model -n {held}" in printed
    printed = job("logs", "photo", *own, "-c", "fetchmodel", code=1)
    assert "its containers are fetch-model, run, wait-for-upload" in printed
    assert "simulated" in job("logs", "photo", *own, "-c", "fetch-model")
    # The pod is deleted, as by kaigen-reaper.
    plane.client.delete(POD, pod["metadata"]["name"], held)
    wait_until(lambda: not plane.client.objects(POD, held), "the pod is gone")
    gone = "container fetch-model: exit code 10; its pods were deleted, and with them what they said"
    assert gone in job("get", "photo", *own)
    printed = job("logs", "photo", *own, code=1)
    assert re.search(r"error: the pods of Job photo expired at [0-9-]+T[0-9:]+Z", printed)


def test_the_attempt_and_the_expiry_are_named(plane: Plane, namespace: str) -> None:
    set_course(plane.client, namespace, Course(state="failed", exit_code=7))
    egpu = partial(call, plane, "egpu")
    own = ("-n", namespace)
    egpu("create", "bad", *own, *WORK, "--gpu", "0", "--storage-class", "standard")
    named(plane, "[Pending] attempt 1 of 3 failed: exit code 7", "egpu", "watch", "bad", *own)
    printed = egpu("watch", "bad", *own, code=1)
    assert "[Failed] exit code 7 (3 attempts)" in printed
    assert "hint: its pods are deleted at once; to read what they print, create it with a longer --ttl" in printed
    printed = egpu("get", "none", *own, code=1)
    assert f"hint: list the Jobs of the namespace: egpu list -n {namespace}" in printed
    claim = plane.client.get(CLAIM, "artifacts-bad", namespace)
    for pod in plane.client.objects(POD, namespace):
        plane.client.delete(POD, pod["metadata"]["name"], namespace)
    plane.client.delete(CLAIM, "artifacts-bad", namespace)
    plane.client.wait_gone(CLAIM, "artifacts-bad", namespace)
    lost = "PersistentVolumeClaim artifacts-bad is gone: it may have expired, as Job "
    assert f"{lost}ephemeralaccelerationjob-bad ended at" in egpu("fetch", "bad", *own, code=1)
    plane.client.create(_deleted(claim), namespace)
    assert "PersistentVolumeClaim artifacts-bad expired, and was deleted at 20" in egpu("fetch", "bad", *own, code=1)
    plane.client.delete(JOB, "ephemeralaccelerationjob-bad", namespace)
    plane.client.wait_gone(JOB, "ephemeralaccelerationjob-bad", namespace)
    assert "PersistentVolumeClaim artifacts-bad expired" in egpu("fetch", "bad", *own, code=1)


def _deleted(claim: Object) -> Object:
    """Return the event that kaigen-reaper writes about a volume that it deleted."""
    metadata = claim["metadata"]
    about = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    about |= {key: metadata[key] for key in ("namespace", "name", "uid")}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.0123456789abcdef"},
        "eventTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()),
        "reportingController": "kaigen.dev/reaper",
        "reportingInstance": "kaigen-reaper",
        "action": "Delete",
        "reason": "ExpiredVolumeDeleted",
        "type": "Normal",
        "regarding": about,
        "note": f"Deleted PersistentVolumeClaim {metadata['namespace']}/{metadata['name']}, which expired 0s ago",
    }


def test_status_names_what_is_missing(plane: Plane, held: str, tmp_path: Path) -> None:
    work: Object = {"image": BASE, "command": ["true"], "resources": {"cpu": "50m", "memory": "64Mi"}}
    volume: Object = {"size": "1Gi", "mountPath": "/artifacts"}
    upload = {"into": "output", "files": [{"path": "input.jpg", "wait": "2h"}]}
    specs = {
        "classless": {**work, "output": {"volume": {**volume, "storageClassName": "absent"}}},
        "runtimeless": {**work, "placement": {"runtimeClassName": "absent"}, "output": {"volume": volume}},
        "photo": {**work, "output": {"volume": volume}, "inputs": upload},
        "image": {**work, "output": {"volume": volume}, "inputs": upload},
        "token": {**work, "output": {"volume": volume}, "inputs": upload},
    }
    (tmp_path / "specs").mkdir()
    settings = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Config", "profile": "k3s", "namespace": held}
    (tmp_path / "kaigen.yaml").write_text(yaml.safe_dump(settings))
    for name, body in specs.items():
        spec = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": body}
        (tmp_path / "specs" / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    kaigen = partial(call, plane, "kaigen", folder=tmp_path)
    for body in yaml.safe_load_all(kaigen("render", "--stdout", "-q")):
        plane.client.apply(body)
    jobs = {
        job["metadata"]["labels"]["app.kubernetes.io/name"]: job["metadata"]["name"]
        for job in plane.client.objects(JOB, held)
    }
    for name, reason, said in (
        ("image", "ErrImagePull", NO_IMAGE),
        ("token", "CreateContainerConfigError", NO_SECRET),
    ):
        set_state(plane, pod_of(plane, held, jobs[name]), {"waiting": {"reason": reason, "message": said}})
    begin = time.monotonic()
    wanted = {
        "classless": NO_CLASS,
        "runtimeless": NO_RUNTIME,
        "photo": "waits for /artifacts/input.jpg",
        "image": f"ErrImagePull: {NO_IMAGE}",
        "token": f"CreateContainerConfigError: {NO_SECRET}",
    }

    shown = ""
    for _ in range(2):
        shown = kaigen("status", code=1)
        rows = {line.split()[1]: line for line in shown.splitlines() if line.startswith(held)}
        if all(text in rows[name] for name, text in wanted.items()):
            break
    assert {name: text in rows[name] for name, text in wanted.items()} == dict.fromkeys(wanted, True), shown
    assert time.monotonic() - begin < NAMED_S
