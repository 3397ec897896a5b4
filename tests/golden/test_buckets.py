"""Rendered objects for a bucket, executed: the downloader fills the bucket, and the gate opens."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kaigen.config.block_settings import Allowed
from kaigen.config.settings import Config
from kaigen.pipeline.run import render
from runtimes.downloader.tests.hub import Hub
from runtimes.downloader.tests.s3 import KEYS, S3, moto
from tests import plain_yaml

PACKAGE = Path(__file__).parents[2] / "runtimes" / "downloader"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SPECS = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: qwen}}
spec:
  source:
    huggingFace: {{repo: org/qwen, revision: {commit}, endpoint: "{hub}"}}
  store:
    bucket:
      uri: s3://{bucket}/llm/qwen/
      endpoint: {server}
      region: us-east-1
      credentials: {{secret: {{name: keys}}}}
  transfer: {{concurrency: 2, partSize: 5Mi}}
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {{name: chat}}
spec:
  model: qwen
  resources: {{gpus: 1}}
"""


@pytest.fixture
def bucket() -> Iterator[S3]:
    with moto() as address, S3(address) as server:
        yield server


@pytest.fixture
def hub() -> Iterator[Hub]:
    found = Hub(repo="org/qwen", revisions={COMMIT: COMMIT})
    found.add("config.json", b'{"model_type": "tiny"}')
    found.add("model.safetensors", os.urandom(1 << 20) * 12)
    with found:
        yield found


def rendered(folder: Path, hub: Hub, bucket: S3, commit: str = COMMIT) -> dict[str, Any]:
    """Return the objects of both specs by app and kind."""
    (folder / "specs.yaml").write_text(
        SPECS.format(commit=commit, hub=hub.url, bucket=bucket.bucket, server=bucket.url)
    )
    files = render([str(folder / "specs.yaml")], Config(root=folder, allow=Allowed(servers=("127.0.0.1",))))
    bodies = {path: plain_yaml.load(text) for path, text in files.items() if path.endswith(".yaml")}
    return {f"{path.split('/')[1]} {body['kind']}": body for path, body in bodies.items()}


def fetching(objects: dict[str, Any]) -> list[str]:
    """Return the arguments of the downloader, without those for a cluster."""
    (fetch,) = objects["qwen Job"]["spec"]["template"]["spec"]["containers"]
    return [each for each in fetch["args"] if not each.startswith("--facts=")]


def waiting(objects: dict[str, Any], folder: Path) -> list[str]:
    """Return the arguments of the gate, for a mount at another folder and a second."""
    (wait,) = objects["chat Deployment"]["spec"]["template"]["spec"]["initContainers"]
    (mount,) = wait["volumeMounts"]
    here = [each.replace(f"--dest={mount['mountPath']}", f"--dest={folder}") for each in wait["args"]]
    return ["--timeout=1s" if each.startswith("--timeout=") else each for each in here]


def served(objects: dict[str, Any], folder: Path) -> Path:
    """Return the folder of a mounted bucket that the engine reads."""
    mounts = objects["chat Deployment"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    return folder / next(str(each["subPath"]) for each in mounts if each["name"] == "model")


def call(arguments: Sequence[str], keys: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the downloader with a container's arguments."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HF_"))}
    env = kept | keys | {"PYTHONPATH": str(PACKAGE), "KAIGEN_POLL": "0.05"}
    command = [sys.executable, "-m", "kaigen_downloader", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def mounted(bucket: S3, prefix: str, folder: Path) -> None:
    """Copy a folder of the bucket, as a CSI driver mounts it."""
    for key in bucket.everything():
        if key.startswith(prefix):
            target = folder / key.removeprefix(prefix)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(bucket.get(key) or b"")


@pytest.mark.promise("Koldun", "The Model's Job streams files from Hugging Face into the S3 bucket")
@pytest.mark.promise("Koldun", "Step 3, credentials management: `objectStorage.secretRef` into env")
def test_the_downloader_fills_a_bucket_and_the_gate_opens(tmp_path: Path, hub: Hub, bucket: S3) -> None:
    objects = rendered(tmp_path, hub, bucket)
    (fetch,) = objects["qwen Job"]["spec"]["template"]["spec"]["containers"]
    volume = objects["qwen PersistentVolume"]["spec"]["csi"]
    assert volume["volumeHandle"] == f"{bucket.bucket}/llm/qwen"
    folder = tmp_path / "mount"
    folder.mkdir()

    assert {each["name"] for each in fetch["env"] if "secretKeyRef" in each.get("valueFrom", {})} < {*KEYS}
    arguments = fetching(objects)
    assert call(arguments, {"AWS_EC2_METADATA_DISABLED": "true"}).returncode == 10  # No keys, no access.
    assert bucket.everything() == set()
    mounted(bucket, "llm/qwen/", folder)
    assert call(waiting(objects, folder), {}).returncode != 0

    done = call(arguments, dict(KEYS))
    assert done.returncode == 0, done.stderr
    mounted(bucket, "llm/qwen/", folder)
    assert (served(objects, folder) / "model.safetensors").read_bytes() == hub.files["model.safetensors"].data
    assert call(waiting(objects, folder), {}).returncode == 0
    test = call(["verify", f"--dest={served(objects, folder)}", "--full"], {})
    assert test.returncode == 0, test.stdout + test.stderr


def test_a_new_revision_leaves_the_objects_of_the_old_one(tmp_path: Path, hub: Hub, bucket: S3) -> None:
    old = rendered(tmp_path, hub, bucket)
    assert call(fetching(old), dict(KEYS)).returncode == 0
    before = {key: bucket.get(key) for key in bucket.everything() if not key.endswith("revisions.json")}

    commit = "f" * 40
    new = rendered(tmp_path, hub, bucket, commit)
    hub.revisions[commit] = commit
    hub.add("model.safetensors", os.urandom(1 << 20) * 12)
    done = call(fetching(new), dict(KEYS))
    assert done.returncode == 0, done.stderr
    assert new["qwen PersistentVolume"] == old["qwen PersistentVolume"]
    assert {key: bucket.get(key) for key in before} == before
    folder = tmp_path / "mount"
    mounted(bucket, "llm/qwen/", folder)
    assert (served(new, folder) / "model.safetensors").read_bytes() == hub.files["model.safetensors"].data
    assert call(waiting(old, folder), {}).returncode == call(waiting(new, folder), {}).returncode == 0

    hub.seen.clear()
    done = call(fetching(old), dict(KEYS))
    assert done.returncode == 0
    assert "already complete" in done.stderr
    assert hub.seen == []
