"""What a user sees of failures on a real node: pods, events and termination messages say what to do."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cluster.apps import JOB, POD, compiled, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.processes import wait_until

SMALL = {"cpu": "100m", "memory": "64Mi"}


def apply(node: Node, folder: Path, namespace: str, *specs: Object) -> None:
    for app in compiled(folder, specs, namespace, "generic").values():
        for rendered in app.objects:
            node.client.apply(rendered.body)


def pods_of(node: Node, namespace: str, app: str) -> list[Object]:
    return node.client.objects(POD, namespace, f"app.kubernetes.io/name={app}")


def last_state(node: Node, namespace: str, app: str) -> Any:
    """Return how the first container of an app's pods that ended with an error did so."""
    for pod in pods_of(node, namespace, app):
        status = pod["status"]
        for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            for state in (each["state"], each.get("lastState", {})):
                if state.get("terminated", {}).get("exitCode"):
                    return state["terminated"]
    return None


def wait_for_failure(node: Node, namespace: str, app: str) -> Any:
    wait_until(lambda: last_state(node, namespace, app) is not None, f"a container of {app} failed")
    return last_state(node, namespace, app)


def describe(node: Node, namespace: str, app: str) -> str:
    """Return what `kubectl describe` prints of an app's pods."""
    selector = f"app.kubernetes.io/name={app}"
    return node.run("kubectl", "describe", "pods", "--namespace", namespace, "--selector", selector).stdout


def model(hub: Hub, **fields: object) -> Object:
    source = {"repo": REPO, "revision": COMMIT, "endpoint": hub.url} | fields
    return spec("Model", "tiny", source={"huggingFace": source}, store={"volume": {"size": "1Gi"}})


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"revision": "0" * 40}, "revision"), ({"repo": "owner/absent"}, "owner/absent")],
    ids=["revision", "repository"],
)
def test_the_termination_message_says_what_the_hub_does_not_have(
    node: Node, node_namespace: str, hub: Hub, tmp_path: Path, fields: Object, message: str
) -> None:
    apply(node, tmp_path, node_namespace, model(hub, **fields))
    ended = wait_for_failure(node, node_namespace, "tiny")
    assert message in ended["message"]
    assert message in describe(node, node_namespace, "tiny")


@pytest.fixture
def small_disk(node: Node, node_namespace: str) -> Iterator[str]:
    """A storage class with one volume, on a file system of 1 MiB."""
    folder = node.folder / "data" / node_namespace
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": node_namespace},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": node_namespace,
            "hostPath": {"path": str(folder)},
        },
    }
    node.client.create(volume)
    yield node_namespace
    node.client.delete("v1/PersistentVolume", node_namespace)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_volume_is_reported_with_what_to_do(
    node: Node, node_namespace: str, small_disk: str, hub: Hub, tmp_path: Path
) -> None:
    fetch = model(hub)
    fetch["spec"]["store"] = {"volume": {"size": "1Gi", "storageClassName": small_disk}}
    apply(node, tmp_path, node_namespace, fetch)
    said = " left of 1.0 MiB, and "
    message = wait_for_failure(node, node_namespace, "tiny")["message"]
    assert said in message
    assert "the model takes 1.5 MiB, give the volume at least that" in message
    assert said in describe(node, node_namespace, "tiny")


def test_a_job_that_fills_its_output_shows_its_last_words(
    node: Node, node_namespace: str, small_disk: str, tmp_path: Path
) -> None:
    write = "open('/output/checkpoint', 'wb').write(bytes(2_000_000))"
    volume = {"volume": {"size": "1Gi", "storageClassName": small_disk}}
    job = spec("Job", "tune", image=BASE, command=["python", "-c", write], output=volume, resources=SMALL, retries=0)
    apply(node, tmp_path, node_namespace, job)
    assert "No space left on device" in wait_for_failure(node, node_namespace, "tune")["message"]
    assert "No space left on device" in describe(node, node_namespace, "tune")


def test_an_event_names_the_missing_secret(node: Node, node_namespace: str, tmp_path: Path) -> None:
    env = {"TOKEN": {"secret": {"name": "absent", "key": "token"}}}
    apply(node, tmp_path, node_namespace, spec("Job", "reader", image=BASE, command=["true"], env=env, resources=SMALL))
    wait_until(lambda: 'secret "absent" not found' in describe(node, node_namespace, "reader"), "an event")


def test_a_job_out_of_memory_is_reported_as_such(node: Node, node_namespace: str, tmp_path: Path) -> None:
    hog = spec(
        "Job", "hog", image=BASE, command=["python", "-c", "data = bytearray(400_000_000)"], resources=SMALL, retries=0
    )
    apply(node, tmp_path, node_namespace, hog)
    assert wait_for_failure(node, node_namespace, "hog")["reason"] == "OOMKilled"
    (job,) = node.client.objects(JOB, node_namespace)
    node.client.wait(JOB, job["metadata"]["name"], node_namespace, lambda found: is_true(found, "Failed"), "failed")


def test_a_crashing_server_shows_its_last_words(node: Node, node_namespace: str, tmp_path: Path) -> None:
    crashing = spec(
        "Topology",
        "crashing",
        engine="container",
        image=BASE,
        model={"folder": "/weights"},
        command=["python", "-c", "raise SystemExit('no weights in /weights')"],
        port=8000,
        resources=SMALL,
    )
    apply(node, tmp_path, node_namespace, crashing)
    assert "no weights in /weights" in wait_for_failure(node, node_namespace, "crashing")["message"]
