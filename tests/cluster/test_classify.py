"""The classify image, built from its Dockerfile: a Job waits for an upload and labels the image."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.apps import JOB, POD, compiled, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import runtime_image
from tests.cluster.live import call
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.tiny_classifier import image, weights
from tests.cluster.vllm_app import model, start_hub

pytestmark = pytest.mark.engine


def classifier() -> Object:
    """The seed's job: an input that is uploaded to the volume of the output."""
    return spec(
        "Job",
        "label",
        workload="classify",
        model="weights",
        classify={"model": "mobilenet_v3_small", "input": "/artifacts/input.jpg"},
        inputs={"into": "output", "files": [{"path": "input.jpg", "wait": "10m"}]},
        output={"volume": {"size": "1Gi", "mountPath": "/artifacts", "storageClassName": "local-path"}},
        resources={"cpu": "100m", "memory": "2Gi"},
    )


@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "downloader"))
def test_an_uploaded_image_is_labelled(node: Node, node_namespace: str, tmp_path: Path) -> None:
    node.import_image(runtime_image("classify"))
    hub = start_hub(node, {"model.safetensors": weights()})
    try:
        apps = compiled(tmp_path, [model("weights", hub), classifier()], node_namespace, "generic")
        for app in apps.values():
            for rendered in app.objects:
                node.client.apply(rendered.body)
        wait_until(partial(waits, node, node_namespace), "the wait for the upload", every=0.5)
        artifacts = folder(node, node_namespace)
        (artifacts / "input.jpg").write_bytes(image())
        (run,) = node.client.objects(JOB, node_namespace, "app.kubernetes.io/name=label")
        name = run["metadata"]["name"]
        node.client.wait(JOB, name, node_namespace, partial(is_true, condition="Complete"), "complete")
    finally:
        hub.__exit__()
    found = json.loads((artifacts / "output.json").read_text())
    assert (found["model"], found["device"], found["image"]) == (
        *("mobilenet_v3_small", "cpu", "/artifacts/input.jpg"),
    )
    probabilities = [item["probability"] for item in found["top5"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) < 1
    assert all(item["label"] for item in found["top5"])
    assert (artifacts / "output.json").stat().st_uid == 65532
    (status,) = pod(node, node_namespace)["status"]["containerStatuses"]
    assert json.loads(status["state"]["terminated"]["message"])["classified"] == 1


@pytest.mark.promise(
    "Ephemeral GPU", "`egpu create --project-dir --input-path` creates the PVC and uploads the project"
)
@pytest.mark.ran("Job", "PersistentVolumeClaim", by="node")
def test_egpu_classifies_an_image_of_a_project(node: Node, tmp_path: Path) -> None:
    node.import_image(runtime_image("classify"))
    project = tmp_path / "resources"
    project.mkdir()
    (project / "sample.jpg").write_bytes(image())
    (project / "mobilenet_v3_small.safetensors").write_bytes(weights())
    egpu = partial(call, node, "egpu", folder=tmp_path)
    network = ("--model", "mobilenet_v3_small", "--gpu", "0")
    small = ("--storage-class", "local-path", "--cpu", "100m", "--memory", "2Gi")
    files = ("--project-dir", "./resources", "--input-path", "/artifacts/sample.jpg")
    egpu("create", "sample-inference", *files, *network, *small)
    assert egpu("watch", "sample-inference").endswith("[Succeeded] Job completed successfully\n")
    egpu("fetch", "sample-inference", "result.json")
    found = json.loads((tmp_path / "result.json").read_text())
    assert (found["model"], found["device"]) == ("mobilenet_v3_small", "cpu")
    assert len(found["top5"]) == 5
    egpu("delete", "sample-inference", "--delete-pvc")


def pod(node: Node, namespace: str) -> Object:
    """Return the pod of the Job."""
    (found,) = node.client.objects(POD, namespace, "app.kubernetes.io/name=label")
    return found


def waits(node: Node, namespace: str) -> bool:
    """Return whether the init container that waits for the upload runs."""
    pods = node.client.objects(POD, namespace, "app.kubernetes.io/name=label")
    states = [state for pod in pods for state in pod["status"].get("initContainerStatuses", ())]
    return any("running" in state["state"] for state in states if state["name"] == "wait-for-upload")


def folder(node: Node, namespace: str) -> Path:
    """Return where the node stores the volume of the output."""
    claim = node.client.get("v1/PersistentVolumeClaim", "label-output", namespace)
    source = node.client.get("v1/PersistentVolume", claim["spec"]["volumeName"])["spec"]
    return Path((source.get("hostPath") or source["local"])["path"])
