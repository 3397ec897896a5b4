"""What Jobs write, as Datasets and Models of others, on a real node and in a bucket of a real S3 server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from runtimes.downloader.tests.s3 import S3
from tests.cluster.apps import JOB, compiled, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.services import bucket_keys, s3_server
from tests.cluster.test_node import install
from tests.cluster.test_node_chain import wait_complete

ROWS = b"question,answer\n" * 4000
TUNED = hashlib.sha256(ROWS * 2).hexdigest()
"""Checksum of what the second Job writes."""

PREPARE = """
import pathlib
clean = pathlib.Path("/output/clean")
clean.mkdir()
(clean / "rows.csv").write_bytes(b"question,answer\\n" * 4000)
(clean / "scratch.tmp").write_bytes(b"not stored")
print("prepared")
"""
TUNE = """
import pathlib
rows = pathlib.Path("/inputs/rows/rows.csv").read_bytes()
assert not pathlib.Path("/inputs/rows/scratch.tmp").exists()
merged = pathlib.Path("/output/merged")
merged.mkdir()
(merged / "model.safetensors").write_bytes(rows * 2)
print("tuned")
"""
READ = """
import hashlib, pathlib
print(hashlib.sha256(pathlib.Path("/model/model.safetensors").read_bytes()).hexdigest())
"""
LOAD = """
import json, os, pathlib
params = json.loads(pathlib.Path("/content/params.json").read_text())
assert os.environ["PARAM_ROWS"] == str(params["rows"]) == "4000"
rows = pathlib.Path("/content/artifacts/clean")
rows.mkdir()
(rows / "rows.csv").write_bytes(b"question,answer\\n" * params["rows"])
print("loaded")
"""
TUNE_LOADED = TUNE.replace("/inputs/rows/rows.csv", "/inputs/rows/clean/rows.csv")
SMALL = {"cpu": "50m", "memory": "128Mi"}
VOLUME = {"volume": {"size": "1Gi"}}


@pytest.fixture
def storage(node: Node) -> Iterator[S3]:
    """An S3 server next to the node."""
    with s3_server(node) as server:
        yield server


def program(name: str, code: str, **fields: object) -> Object:
    return spec("Job", name, image=BASE, command=["python", "-c", code], resources=SMALL, **fields)


def place(storage: S3, uri: str) -> Object:
    """Return a folder of a bucket with the keys of the test."""
    return {"uri": uri, "endpoint": f"http://{storage.backend}", "credentials": {"secret": {"name": "bucket-keys"}}}


def make_keys(node: Node, namespace: str) -> None:
    """Create the Secret with the keys of the bucket."""
    node.client.apply(bucket_keys("bucket-keys", namespace))


def specs(storage: S3, bucket: str) -> list[Object]:
    """Return a Job, its Dataset, a Job that reads it, its Model in a bucket and in a volume, and a reader."""
    tuned = {"job": {"name": "tune", "path": "merged"}}
    return [
        program("prepare", PREPARE, output=VOLUME),
        spec(
            "Dataset", "rows", source={"job": {"name": "prepare", "path": "clean", "include": ["*.csv"]}}, store=VOLUME
        ),
        program("tune", TUNE, inputs=[{"dataset": "rows"}], output=VOLUME),
        spec("Model", "published", source=tuned, store={"bucket": place(storage, f"s3://{bucket}/tuned")}),
        spec("Model", "tuned", source=tuned, store=VOLUME),
        program("read", READ, model="tuned"),
    ]


@pytest.mark.promise("Substratus", "`loader` loads a model into its location")
@pytest.mark.ran("Job", "PersistentVolumeClaim", "ServiceAccount", "Role", "RoleBinding", by=("node", "downloader"))
def test_outputs_of_jobs_are_read_as_datasets_and_models(
    node: Node, node_namespace: str, storage: S3, tmp_path: Path
) -> None:
    bucket = f"outputs-{node_namespace[-6:]}"
    with node.network.entered():
        storage.make_bucket(bucket)
    make_keys(node, node_namespace)
    apps = compiled(tmp_path / "specs", specs(storage, bucket), node_namespace, "generic")
    # In the wrong order. Without its CSI driver, the node has no volume for the bucket: only its Job matters.
    for name in ("read", "tuned", "tune", "rows", "prepare"):
        install(node, {name: apps[name]}, "manifests", tmp_path / "charts")
    for found in apps["published"].objects:
        if found.body["kind"] not in ("PersistentVolume", "PersistentVolumeClaim", "Pod"):
            node.client.apply(found.body)
    assert wait_complete(node, node_namespace, apps["prepare"]) == "prepared"
    assert wait_complete(node, node_namespace, apps["tune"]) == "tuned"
    assert wait_complete(node, node_namespace, apps["read"]) == TUNED
    name = job_name(apps["published"])
    node.client.wait(JOB, name, node_namespace, partial(is_true, condition="Complete"), "complete")
    with node.network.entered():
        (marker,) = [key for key in storage.everything() if key.endswith("/.kaigen/model.json")]
        written = json.loads(storage.get(marker) or b"")
        weights = storage.get(marker.replace(".kaigen/model.json", "model.safetensors")) or b""
    assert hashlib.sha256(weights).hexdigest() == TUNED
    assert [file["sha256"] for file in written["files"]] == [TUNED]

    # A Job that was deleted and is created again finds the files of that run.
    (job,) = [found.body for found in apps["published"].objects if found.body["kind"] == "Job"]
    node.run("kubectl", "delete", "job", name, "--namespace", node_namespace, "--wait")
    node.client.apply(job)
    node.client.wait(JOB, name, node_namespace, partial(is_true, condition="Complete"), "complete")
    printed = node.run("kubectl", "logs", "--namespace", node_namespace, f"job/{name}", "--container", "fetch").stdout
    assert "already complete" in printed


@pytest.mark.ran(
    "Job", "PersistentVolumeClaim", "ServiceAccount", "Role", "RoleBinding", "ConfigMap", by=("node", "downloader")
)
def test_a_loader_fills_a_dataset_and_the_output_of_a_run_goes_to_its_folder_of_a_bucket(
    node: Node, node_namespace: str, storage: S3, tmp_path: Path
) -> None:
    bucket = f"results-{node_namespace[-6:]}"
    with node.network.entered():
        storage.make_bucket(bucket)
    make_keys(node, node_namespace)
    loader = {"image": BASE, "command": ["python", "-c", LOAD], "params": {"rows": 4000}, "resources": SMALL}
    output = {**VOLUME, "bucket": place(storage, f"s3://{bucket}/tune")}
    apps = compiled(
        tmp_path / "specs",
        [
            spec("Dataset", "rows", source={"loader": loader}, store=VOLUME),
            program("tune", TUNE_LOADED, inputs=[{"dataset": "rows"}], output=output),
            spec("Model", "tuned", source={"job": {"name": "tune", "path": "merged"}}, store=VOLUME),
            program("read", READ, model="tuned"),
        ],
        node_namespace,
        "generic",
    )
    for name in ("read", "tuned", "tune", "rows", "rows-load"):
        install(node, {name: apps[name]}, "manifests", tmp_path / "charts")
    assert wait_complete(node, node_namespace, apps["rows-load"]) == "loaded"
    assert wait_complete(node, node_namespace, apps["read"]) == TUNED
    jobs = {
        found.body["metadata"]["labels"]["app.kubernetes.io/component"]: found.body
        for found in apps["tune"].objects
        if found.body["kind"] == "Job"
    }
    run, upload = (jobs[each]["metadata"]["name"] for each in ("run", "upload"))
    folder = f"tune/{run}"
    with node.network.entered():
        written = json.loads(storage.get(f"{folder}/.kaigen/model.json") or b"")
        weights = storage.get(f"{folder}/merged/model.safetensors") or b""
    assert hashlib.sha256(weights).hexdigest() == TUNED
    assert [(file["path"], file["sha256"]) for file in written["files"]] == [("merged/model.safetensors", TUNED)]

    # An upload that was deleted and is created again finds the folder of that run.
    node.run("kubectl", "delete", "job", upload, "--namespace", node_namespace, "--wait")
    node.client.apply(jobs["upload"])
    node.client.wait(JOB, upload, node_namespace, partial(is_true, condition="Complete"), "complete")
    printed = node.run(
        "kubectl", "logs", "--namespace", node_namespace, f"job/{upload}", "--container", "upload"
    ).stdout
    assert "already complete" in printed
