"""The convert image, built from its Dockerfile: a Model is converted in a volume, and into a bucket."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from runtimes.downloader.tests.s3 import S3
from tests.cluster.apps import JOB, POD, compiled, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE, runtime_image
from tests.cluster.node import Node
from tests.cluster.services import bucket_keys, s3_server
from tests.cluster.tiny_dllama import converted, converted_model, facts, files
from tests.cluster.vllm_app import start_hub

pytestmark = pytest.mark.engine

READ = """
import hashlib, json, os, pathlib
names = sorted(path.name for path in pathlib.Path("/weights").iterdir())
print(json.dumps({"names": names, "model": hashlib.sha256(open("/weights/model.m", "rb").read()).hexdigest()}))
"""


@pytest.fixture
def storage(node: Node) -> Iterator[S3]:
    """An S3 server next to the node."""
    with s3_server(node) as server:
        yield server


def specs(hub_model: Object) -> list[Object]:
    """Return the Model and a Job that reads it."""
    small = {"cpu": "50m", "memory": "128Mi"}
    use = {"name": "tiny", "mountPath": "/weights"}
    return [hub_model, spec("Job", "read", image=BASE, command=["python", "-c", READ], resources=small, model=use)]


@pytest.mark.promise("Koldun", "Root and workers wait for the output of the `Model`")
@pytest.mark.promise("Koldun", "`status.conversionSizeBytes`, `status.conversionSizeHuman`")
@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "downloader", "convert"))
@pytest.mark.ran("Job", "PersistentVolumeClaim", by="node")
def test_a_downloaded_model_is_converted_and_read_by_its_gate(node: Node, node_namespace: str, tmp_path: Path) -> None:
    node.import_image(runtime_image("convert"))
    hub = start_hub(node, files())
    try:
        apps = compiled(tmp_path, specs(converted_model("tiny", hub)), node_namespace, "generic")
        # The reader first: it waits for the converted files.
        for name in ("read", "tiny"):
            for rendered in apps[name].objects:
                node.client.apply(rendered.body)
        measured = json.loads(ended(node, node_namespace, job_name(apps["tiny"])))
        printed = json.loads(log(node, node_namespace, job_name(apps["read"])))
        assert printed == {
            "names": [".kaigen", "model.m", "tokenizer.t"],
            "model": hashlib.sha256(converted("q40")).hexdigest(),
        }
        assert measured["bytes"] > len(converted("q40"))
        assert (measured["weights"], measured["human"][-3:]) == ("q40", "KiB")
        recorded = node.client.get("v1/ConfigMap", "tiny-facts", node_namespace)["data"]
        assert (recorded["conversionSizeBytes"], recorded["conversionSizeHuman"]) == (
            str(measured["bytes"]),
            measured["human"],
        )
        assert recorded["files"] == str(len(files()))
        # A run that starts again, as after a lost Job, adopts what is there.
        node.client.delete(JOB, job_name(apps["tiny"]), node_namespace, propagation="Foreground")
        node.client.wait_gone(JOB, job_name(apps["tiny"]), node_namespace)
        for rendered in apps["tiny"].objects:
            node.client.apply(rendered.body)
        assert json.loads(ended(node, node_namespace, job_name(apps["tiny"]))) == measured
        assert "already converted" in everything(node, node_namespace, job_name(apps["tiny"]), "--container=convert")
    finally:
        hub.__exit__()


@pytest.mark.promise("Koldun", "The conversion Job reads the bucket and uploads the result to the target prefix")
@pytest.mark.ran("Job", by=("node", "downloader", "convert"))
def test_a_model_of_a_bucket_is_converted_on_the_disk_of_the_node(
    node: Node, node_namespace: str, storage: S3, tmp_path: Path
) -> None:
    node.import_image(runtime_image("convert"))
    bucket = f"converted-{node_namespace[-6:]}"
    with node.network.entered():
        storage.make_bucket(bucket)
    node.client.apply(bucket_keys("bucket-keys", node_namespace))
    hub = start_hub(node, files())
    try:
        model = converted_model("tiny", hub)
        model["spec"]["facts"] = facts()
        model["spec"]["store"] = {
            "bucket": {
                "uri": f"s3://{bucket}/tiny",
                "endpoint": f"http://{storage.backend}",
                "credentials": {"secret": {"name": "bucket-keys"}},
            }
        }
        app = compiled(tmp_path, [model], node_namespace, "generic")["tiny"]
        # Without its CSI driver, the node has no volume for the bucket: only the Job and its access matter.
        bodies = [each.body for each in app.objects if not each.body["kind"].startswith("PersistentVolume")]
        for body in bodies:
            node.client.apply(body)
        name = job_name(app)
        node.client.wait(JOB, name, node_namespace, partial(is_true, condition="Complete"), "complete")
        (job,) = [body for body in bodies if body["kind"] == "Job"]
        volumes = {each["name"]: each.get("emptyDir") for each in job["spec"]["template"]["spec"]["volumes"]}
        assert volumes["converted"]["sizeLimit"]
        with node.network.entered():
            keys = storage.everything()
            (stored,) = [key for key in keys if key.endswith("/model.m")]
            folder = stored.rpartition("/")[0]
            assert folder.startswith("tiny/converted/")
            assert {f"{folder}/tokenizer.t", f"{folder}/.kaigen/model.json"} <= keys
            assert storage.get(stored) == converted("q40")
        # A pod that comes later finds the result, and converts nothing.
        node.client.delete(JOB, name, node_namespace, propagation="Foreground")
        node.client.wait_gone(JOB, name, node_namespace)
        node.client.apply(job)
        node.client.wait(JOB, name, node_namespace, partial(is_true, condition="Complete"), "complete")
        assert "already complete" in everything(node, node_namespace, name)
    finally:
        hub.__exit__()


def ended(node: Node, namespace: str, name: str) -> str:
    """Wait until a Job is complete; return the termination message of its converter."""
    node.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete")
    (pod,) = node.client.objects(POD, namespace, f"batch.kubernetes.io/job-name={name}")
    (status,) = [each for each in pod["status"]["initContainerStatuses"] if each["name"] == "convert"]
    return str(status["state"]["terminated"]["message"])


def log(node: Node, namespace: str, name: str) -> str:
    """Wait until a Job is complete; return the last line of its log."""
    node.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete")
    return everything(node, namespace, name).strip().rpartition("\n")[2]


def everything(node: Node, namespace: str, name: str, *options: str) -> str:
    """Return the log of a Job's main container, or of the one that an option names."""
    return node.run("kubectl", "logs", "--namespace", namespace, f"job/{name}", *options).stdout
