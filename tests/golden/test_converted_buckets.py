"""The containers of a conversion into a bucket, executed in their order: readers get the converted files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kaigen.config.block_settings import Allowed
from kaigen.config.settings import Config
from kaigen.pipeline.run import render
from runtimes.downloader.tests.hub import Hub
from runtimes.downloader.tests.s3 import KEYS, S3, moto
from tests import plain_yaml
from tests.cluster.tiny_dllama import converted, files
from tests.golden.test_buckets import call, mounted

PACKAGE = Path(__file__).parents[2] / "runtimes" / "convert"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SPECS = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: qwen}}
spec:
  source: {source}
  convert: {{distributedLlama: {{weights: q40{own}}}}}
  store: {store}
---
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: read}}
spec:
  image: busybox:1.36
  command: [ls, /weights]
  resources: {{cpu: 100m, memory: 64Mi}}
  model: {{name: qwen, mountPath: /weights}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with moto() as address:
        yield address


@pytest.fixture
def bucket(server: str) -> Iterator[S3]:
    with S3(server) as found:
        yield found


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(repo="org/qwen", revisions={COMMIT: COMMIT}) as found:
        for path, data in files().items():
            found.add(path, data)
        yield found


def block(bucket: S3, prefix: str) -> str:
    """Return the block of a bucket."""
    return json.dumps(
        {
            "bucket": {
                "uri": f"s3://{bucket.bucket}/{prefix}",
                "endpoint": bucket.url,
                "region": "us-east-1",
                "credentials": {"secret": {"name": "keys"}},
            }
        }
    )


def rendered(folder: Path, **parts: str) -> dict[str, Any]:
    """Return the objects of both specs by app and kind."""
    (folder / "specs.yaml").write_text(SPECS.format(**parts))
    found = render([str(folder / "specs.yaml")], Config(root=folder, allow=Allowed(servers=("127.0.0.1",))))
    bodies = {path: plain_yaml.load(text) for path, text in found.items() if path.endswith(".yaml")}
    return {f"{path.split('/')[1]} {body['kind']}": body for path, body in bodies.items()}


def pod(objects: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the spec of a Job's pod."""
    found: dict[str, Any] = objects[f"{name} Job"]["spec"]["template"]["spec"]
    return found


def run(container: dict[str, Any], disk: Path) -> None:
    """Run a container of the Model with its own mounts, and with keys only where it has variables for them."""
    arguments = [each for each in container["args"] if not each.startswith("--facts=")]
    for mount in container.get("volumeMounts", []):
        path = mount["mountPath"]
        arguments = [
            each.replace(f"={path}/", f"={disk}{path}/").replace(f"{path}/", f"{disk}{path}/", 1)
            if each.startswith(f"{path}/")
            else each.replace(f"={path}/", f"={disk}{path}/")
            for each in arguments
        ]
    if container["name"] == "convert":
        command = [sys.executable, "-m", "kaigen_convert", *arguments]
        done = subprocess.run(command, env={"PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True, check=False)
    else:
        names = {each["name"] for each in container.get("env", []) if "secretKeyRef" in each.get("valueFrom", {})}
        keys = {name: KEYS[name.removeprefix("SOURCE_")] for name in names}
        done = call(arguments, {**keys, "AWS_EC2_METADATA_DISABLED": "true"})
    assert done.returncode == 0, f"{container['name']}: {done.stderr}"


def convert(objects: dict[str, Any], disk: Path) -> list[str]:
    """Run all containers of the Model; return their names."""
    (disk / "model").mkdir(parents=True)
    (disk / "converted").mkdir()
    found = pod(objects, "qwen")
    steps = [*found["initContainers"], *found["containers"]]
    for container in steps:
        run(container, disk)
    return [container["name"] for container in steps]


def check_reader(objects: dict[str, Any], bucket: S3, prefix: str, folder: Path) -> None:
    """Check that the reader's gate opens, and that its mount has the converted files and nothing else."""
    folder.mkdir()
    mounted(bucket, prefix, folder)
    reader = pod(objects, "read")
    (gate,) = reader["initContainers"]
    (mount,) = gate["volumeMounts"]
    arguments = [each.replace(f"--dest={mount['mountPath']}", f"--dest={folder}") for each in gate["args"]]
    done = call(["--timeout=1s" if each.startswith("--timeout=") else each for each in arguments], {})
    assert done.returncode == 0, done.stderr
    paths = [each["subPath"] for each in reader["containers"][0]["volumeMounts"] if each["name"] == "model"]
    weights = folder / paths[0]
    assert {each.name for each in weights.iterdir()} == {".kaigen", "model.m", "tokenizer.t"}
    assert (weights / "model.m").read_bytes() == converted("q40")
    (volume,) = [each for each in reader["volumes"] if each["name"] == "model"]
    claim = objects["qwen PersistentVolumeClaim"]["metadata"]["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim
    assert objects["qwen PersistentVolume"]["spec"]["csi"]["volumeHandle"] == f"{bucket.bucket}/{prefix.rstrip('/')}"


@pytest.mark.promise("Koldun", "The conversion Job reads the bucket and uploads the result to the target prefix")
def test_files_of_one_bucket_are_converted_into_another(tmp_path: Path, hub: Hub, bucket: S3) -> None:
    source = f'{{huggingFace: {{repo: org/qwen, revision: {COMMIT}, endpoint: "{hub.url}"}}}}'
    own = f", store: {block(bucket, 'converted/qwen')}"
    objects = rendered(tmp_path, source=source, own=own, store=block(bucket, "models/qwen"))
    names = convert(objects, tmp_path / "disk")
    assert names == ["fetch", "stage", "convert", "record", "upload"]
    check_reader(objects, bucket, "converted/qwen/", tmp_path / "mount")
    kept = {key for key in bucket.everything() if key.startswith("models/qwen/")}
    assert any(key.endswith("model-00001-of-00002.safetensors") for key in kept)
    # The next run finds both buckets complete, and stores nothing.
    hub.seen.clear()
    bucket.asked.clear()
    convert(objects, tmp_path / "again")
    assert hub.seen == []
    assert [each for each in bucket.requests("^PUT") if "revisions.json" not in each] == []


def test_converted_files_are_below_the_downloaded_ones_by_default(tmp_path: Path, bucket: S3) -> None:
    for path, data in files().items():
        bucket.put(f"upstream/{path}", data)
    given = json.loads(block(bucket, "upstream"))["bucket"]
    source = json.dumps({"s3": given})
    objects = rendered(tmp_path, source=source, own="", store=block(bucket, "models/qwen"))
    assert convert(objects, tmp_path / "disk") == ["fetch", "stage", "convert", "record", "upload"]
    check_reader(objects, bucket, "models/qwen/", tmp_path / "mount")


def test_files_of_a_volume_are_converted_into_a_bucket(tmp_path: Path, hub: Hub, bucket: S3) -> None:
    source = f'{{huggingFace: {{repo: org/qwen, revision: {COMMIT}, endpoint: "{hub.url}"}}}}'
    own = f", store: {block(bucket, 'converted/qwen')}"
    objects = rendered(tmp_path, source=source, own=own, store="{volume: {size: 5Gi}}")
    volumes = {each["name"]: each for each in pod(objects, "qwen")["volumes"]}
    assert volumes["weights"]["persistentVolumeClaim"]["claimName"] == "qwen-weights"
    assert volumes["converted"] == {"name": "converted", "emptyDir": {}}
    (upload,) = pod(objects, "qwen")["containers"]
    (mount,) = [each for each in upload["volumeMounts"] if each["name"] != "gate-token"]
    identity = upload["args"][-1].partition("=")[2]
    assert upload["args"][:2] == ["put", f"{mount['mountPath']}/{identity}"]
