"""`kaigen job` and `egpu` on a real node: the README of the Ephemeral GPU operator; files, logs and shells."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.apps import CLAIM, POD, compiled, spec
from tests.cluster.client import Object
from tests.cluster.images import BASE, build_from, runtime_image
from tests.cluster.live import SMALL, call, objects, start
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.reaper import ACCOUNT, CHART
from tests.cluster.test_node import install

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def served(node: Node, folder: Path) -> Iterator[str]:
    """Serve a folder to pods by HTTP."""
    argv = [sys.executable, "-m", "http.server", "8199", "--bind", node.network.host, "--directory", str(folder)]
    with subprocess.Popen(node.network.command(argv), stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: node.listens(8199, node.network.host), "the server listens")
        try:
            yield f"http://{node.network.host}:8199"
        finally:
            process.terminate()


def add_gpus(node: Node) -> None:
    """Give the node GPUs, as a device plugin does, and the storage class of the seed."""
    change = {"status": {field: {"nvidia.com/gpu": "2"} for field in ("capacity", "allocatable")}}
    node.client.patch("v1/Node", "node", "", change, "status")
    node.client.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "longhorn"},
            "provisioner": "rancher.io/local-path",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )


WORK = "sh -c 'echo working; cat /artifacts/image.jpg > /artifacts/output.json'"


@pytest.mark.promise(
    "Ephemeral GPU", "`egpu create --project-dir --input-path` creates the PVC and uploads the project"
)
@pytest.mark.promise("Ephemeral GPU", "`egpu create --pvc-ttl 86400` keeps the PVC that long")
@pytest.mark.promise("Ephemeral GPU", "`egpu copy-file NAME URL --target-path`, also before `egpu create`")
@pytest.mark.promise("Ephemeral GPU", "`egpu debug NAME`, then `kubectl exec`")
@pytest.mark.promise("Ephemeral GPU", "`egpu watch NAME`")
@pytest.mark.promise("Ephemeral GPU", "`egpu get NAME` shows the artifact path")
@pytest.mark.promise("Ephemeral GPU", "`egpu list`")
@pytest.mark.promise("Ephemeral GPU", "`egpu cleanup`, also with `--namespace`, deletes PVCs where the TTL has expired")
@pytest.mark.promise("Ephemeral GPU", "`egpu delete --delete-pvc`")
@pytest.mark.promise("Ephemeral GPU", "`kubectl logs -l app=gpu-job`")
@pytest.mark.promise("Ephemeral GPU", "`kubectl wait pvc/artifacts-NAME`")
@pytest.mark.ran("Job", "PersistentVolumeClaim", by="node")
def test_every_egpu_command_of_the_readme(node: Node, tmp_path: Path) -> None:
    add_gpus(node)
    egpu = partial(call, node, "egpu", folder=tmp_path)
    work = ("--image", BASE, "--command", WORK, *SMALL)
    (tmp_path / "my-code").mkdir()
    (tmp_path / "my-code" / "image.jpg").write_text("an image")
    # The file may come before the Job.
    with served(node, tmp_path / "my-code") as url:
        target = ("--target-path", "/artifacts/input.jpg")
        assert "8 B downloaded" in egpu("copy-file", "my-job", f"{url}/image.jpg", *target)
        assert "answers 404" in egpu("copy-file", "my-job", f"{url}/$(id)'; id", *target, code=3)
        egpu("copy-file", "my-job", f"{url}/image.jpg", "--target-path", "/artifacts/$(id)'; id")
    egpu("create", "my-job", "--project-dir", "./my-code", "--input-path", "/artifacts/image.jpg", *work)
    egpu("create", "training-job", "--project-dir", "./my-code", "--pvc-ttl", "86400", *work)
    assert egpu("watch", "my-job").endswith("[Succeeded] Job completed successfully\n")
    egpu("watch", "training-job")
    described = egpu("get", "my-job")
    assert "Artifact:   /artifacts/output.json" in described
    assert re.search(r"default +my-job +Succeeded +1", egpu("list"))
    with start(node, "egpu", "debug", "my-job") as process:
        assert process.stdout is not None
        assert "the volume is at /mnt" in process.stdout.readline()
        words = process.stdout.readline().replace("-it ", "").split()
        assert words[:2] == ["kubectl", "exec"]
        assert node.run(*words[:-1], "cat", "/mnt/output.json").stdout == "an image"
        listing = node.run(*words[:-1], "ls", "/mnt").stdout.splitlines()
        assert sorted(listing) == ["$(id)'; id", "image.jpg", "input.jpg", "output.json"]
        process.send_signal(signal.SIGINT)
        process.wait(60)
    pod = words[2]
    assert re.fullmatch(r"debug-my-job-[0-9]+", pod)
    assert node.client.find(POD, pod, "default") is None
    # The README's lines with kubectl.
    assert "working" in node.run("kubectl", "logs", "-l", "app=gpu-job", "--tail=50").stdout
    assert "working" in node.run("kubectl", "logs", "job/ephemeralaccelerationjob-my-job").stdout
    node.run("kubectl", "wait", "--for=jsonpath={.status.phase}=Bound", "pvc/artifacts-my-job", "--timeout=60s")
    assert "nvidia.com/gpu" in node.run("kubectl", "describe", "job", "ephemeralaccelerationjob-my-job").stdout
    assert "0 PVC(s) deleted, 2 skipped" in egpu("cleanup")
    patch = {"metadata": {"annotations": {"kaigen.dev/ttl": "0"}}}
    node.client.patch(CLAIM, "artifacts-training-job", "default", patch)
    assert "persistentvolumeclaim/artifacts-training-job deleted" in egpu("cleanup", "--namespace", "default")
    egpu("delete", "training-job")
    assert "PersistentVolumeClaim/artifacts-my-job" in objects(node, "default")
    kept = egpu("delete", "my-job")
    assert "persistentvolumeclaim/artifacts-my-job stays until it expires" in kept
    left = egpu("delete", "my-job", code=1)
    assert "delete it with: egpu delete my-job --delete-pvc" in kept
    assert "delete it with: egpu delete my-job --delete-pvc" in left
    egpu("delete", "my-job", "--delete-pvc")
    wait_until(lambda: objects(node, "default") == set(), "nothing is left")


INFER = "kaigen.test/infer:1"
"""An image of a user with the operator's command. It copies the image to the result."""

_SCRIPT = b"""
import argparse, json, pathlib
parser = argparse.ArgumentParser()
for name in ("model", "input", "output"):
    parser.add_argument(f"--{name}", required=True)
given = parser.parse_args()
size = pathlib.Path(given.input).stat().st_size
pathlib.Path(given.output).write_text(json.dumps({"model": given.model, "bytes": size}))
"""
_DOCKERFILE = f"""
FROM {BASE}
COPY run_infer.py /app/job_image_infer/run_infer.py
ENV PYTHONPATH=/app
"""
_CONFIG = f"""
namespace: default
values:
  default/sample-inference:
    image: {INFER}
    resources:
      requests: {{cpu: 50m, memory: 64Mi, nvidia.com/gpu: 1}}
      limits: {{memory: 64Mi, nvidia.com/gpu: 1}}
"""


@pytest.mark.promise("Ephemeral GPU", "`EphemeralAccelerationJob` creates a PVC and a GPU pod that reads and writes it")
@pytest.mark.promise("Ephemeral GPU", "`image`: job container image")
@pytest.mark.promise("Ephemeral GPU", "`make example`: the example resource is applied and watched")
@pytest.mark.promise("Ephemeral GPU", "`make artifacts`")
@pytest.mark.promise("Ephemeral GPU", "`make clean`")
@pytest.mark.promise("Ephemeral GPU", "`kubectl wait pvc/artifacts-NAME`")
@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "downloader", "reaper"))
def test_a_resource_of_the_operator_runs_after_its_image_was_copied(node: Node, tmp_path: Path) -> None:
    """The README's way with kubectl: apply, wait for the volume, copy the image, read the result."""
    add_gpus(node)
    for archive in (runtime_image("reaper"), build_from(INFER, _DOCKERFILE, {"run_infer.py": _SCRIPT})):
        node.import_image(archive)
    (tmp_path / "specs").mkdir()
    text = (ROOT / "examples/ephemeral/ephemeralaccelerationjob.yaml").read_text()
    text = text.replace("gpu-job-inference:latest", INFER)
    (tmp_path / "specs" / "job.yaml").write_text(text)
    (tmp_path / "kaigen.yaml").write_text(_CONFIG)
    call(node, "kaigen", "render", folder=tmp_path)
    folder = tmp_path / "rendered/default/sample-inference/manifests"
    node.run("kubectl", "apply", "-k", str(folder))
    volume = "pvc/artifacts-sample-inference"
    node.run("kubectl", "wait", "--for=create", volume, "--timeout=120s")
    node.run("kubectl", "wait", "--for=jsonpath={.status.phase}=Bound", volume, "--timeout=120s")
    (tmp_path / "image.jpg").write_bytes(b"an image")
    egpu = partial(call, node, "egpu", folder=tmp_path)
    with served(node, tmp_path) as url:
        egpu("copy-file", "sample-inference", f"{url}/image.jpg", "--target-path", "/artifacts/input.jpg")
    assert egpu("watch", "sample-inference").endswith("[Succeeded] Job completed successfully\n")
    egpu("fetch", "sample-inference", "result.json")
    assert json.loads((tmp_path / "result.json").read_text()) == {"model": "resnet50", "bytes": 8}

    # Its pods expire at once, and its volume after an hour.
    node.run("helm", "install", ACCOUNT, str(CHART), "--namespace", "default", "--wait", "--timeout", "3m")
    wait_until(lambda: not _pods_of(node, "sample-inference"), "the pods are gone")
    assert "Succeeded" in egpu("list")
    assert f"persistentvolumeclaim/{volume.partition('/')[2]}" in node.run("kubectl", "get", "pvc", "-o", "name").stdout
    node.run("helm", "uninstall", ACCOUNT, "--namespace", "default", "--wait")
    node.run("kubectl", "delete", "-k", str(folder), "--wait=false")
    wait_until(lambda: "sample-inference" not in str(objects(node, "default")), "nothing is left", 120)


def test_files_for_a_job_of_git_go_to_its_own_volume(node: Node, node_namespace: str, tmp_path: Path) -> None:
    copying = "cat /data/input.jpg /data/more.txt > /data/output.json"
    wanted = spec(
        "Job",
        "photo",
        image=BASE,
        command=["sh", "-c", copying],
        args=["--output=/data/output.json"],
        resources={"cpu": "50m", "memory": "64Mi"},
        output={"volume": {"size": "1Gi", "mountPath": "/data"}},
        inputs={"into": "output", "files": [{"path": path, "wait": "5m"} for path in ("more.txt", "input.jpg")]},
    )
    install(node, compiled(tmp_path / "specs", [wanted], node_namespace), "manifests", tmp_path)
    job = partial(call, node, "kaigen", "job")
    where = ("-n", node_namespace)
    (tmp_path / "image.jpg").write_text("an image")
    (tmp_path / "more.txt").write_text(" and more")
    job("cp", str(tmp_path / "more.txt"), "photo:/data/more.txt", *where)
    with served(node, tmp_path) as url:
        copied = job("copy-file", "photo", f"{url}/image.jpg", "--target-path", "/data/input.jpg", *where)
    assert copied.endswith("8 B downloaded to photo:/data/input.jpg\n")
    claims = {name for name in objects(node, node_namespace) if name.startswith("PersistentVolumeClaim/")}
    assert claims == {"PersistentVolumeClaim/photo-output"}
    assert job("watch", "photo", *where).endswith("[Succeeded] Job completed successfully\n")
    job("fetch", "photo", str(tmp_path / "result"), *where)
    assert (tmp_path / "result").read_text() == "an image and more"
    missing = job("cp", "photo:/data/none", str(tmp_path), *where, code=1)
    assert missing == "error: /data/none: no such file or folder in the volume\n"


def _pods_of(node: Node, name: str) -> list[Object]:
    return node.client.objects(POD, "default", f"app.kubernetes.io/name={name}")


COUNT = """\
import time
for number in range(60):
    print(number, flush=True)
    time.sleep(0.2)
"""


@pytest.mark.promise("Ephemeral GPU", "`make logs`")
def test_files_logs_and_shells_of_a_job(node: Node, node_namespace: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "empty").mkdir(parents=True)
    (project / "deep" / "er").mkdir(parents=True)
    (project / "deep" / "er" / "data.bin").write_bytes(os.urandom(5_000_000))
    (project / "run.py").write_text(COUNT)
    (project / "skipped.log").write_text("no")
    (project / ".kaigenignore").write_text("*.log\n")
    where = ("-n", node_namespace)
    job = partial(call, node, "kaigen", "job")
    work = ("--image", BASE, "--command", "python /artifacts/code/run.py", *SMALL)
    upload = ("--project-dir", str(project), "--target-path", "/artifacts/code")
    assert "3 files uploaded" in job("create", "first", *where, *upload, *work)
    with start(node, "kaigen", "job", "logs", "first", "-f", *where) as process:
        assert process.stdout is not None
        printed = process.stdout.readline()
        node.processes.stop("kube-apiserver", kill=True)
        node.processes.start_again("kube-apiserver")
        printed += process.communicate(timeout=120)[0]
    assert printed.split() == [str(number) for number in range(60)]
    node.wait_ready()
    copy = tmp_path / "copy"
    job("cp", "first:/artifacts/code", str(copy), *where)
    assert (copy / "deep/er/data.bin").read_bytes() == (project / "deep/er/data.bin").read_bytes()
    assert (copy / "empty").is_dir()
    assert not (copy / "skipped.log").exists()
    job("cp", str(copy / "run.py"), "first:/artifacts/output.json", *where)
    assert "1 file" in job("fetch", "first", str(tmp_path / "result"), *where)
    assert (tmp_path / "result").read_bytes() == (project / "run.py").read_bytes()
    assert job("debug", "first", *where, "--", "sh", "-c", "ls /artifacts; exit 3", code=3).splitlines()[:2] == [
        "code",
        "output.json",
    ]
    assert _typed(node, node_namespace) == 5
    # A second run is interrupted while it uploads.
    (project / "large.bin").write_bytes(bytes(200_000_000))
    before = objects(node, node_namespace)
    leader, follower = pty.openpty()
    create = ("kaigen", "job", "create", "second", *where, *upload, *work)
    with start(node, *create, stdout=follower) as process:
        os.close(follower)
        wait_until(lambda: any("upload-second" in name for name in objects(node, node_namespace)), "it uploads")
        shown = b""
        while b"MiB/s" not in shown:
            shown += os.read(leader, 4096)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the end of a terminal
            while data := os.read(leader, 4096):
                shown += data
        process.wait(60)
    os.close(leader)
    assert process.returncode == 130
    assert re.search(rb"\ruploading \[#*\.*\] [\d.]+ MiB of 195\.5 MiB, [\d.]+ MiB/s", shown), shown
    assert objects(node, node_namespace) == before
    job("delete", "first", *where)
    wait_until(lambda: objects(node, node_namespace) == set(), "nothing is left")


def _typed(node: Node, namespace: str) -> int:
    """Open a shell in a debug pod from a terminal, type in it, and return its exit code."""
    leader, follower = pty.openpty()
    with start(node, "kaigen", "job", "debug", "first", "-n", namespace, "--exec", stdin=follower) as process:
        wait_until(lambda: any("debug-first" in name for name in objects(node, namespace)), "the pod is there")
        pod = next(name for name in objects(node, namespace) if "debug-first" in name).partition("/")[2]
        wait_until(lambda: node.client.get(POD, pod, namespace)["status"].get("phase") == "Running", "the pod runs")
        os.write(leader, b"ls /artifacts/code\nexit 5\n")
        printed = process.communicate(timeout=60)[0]
    os.close(leader)
    os.close(follower)
    assert "run.py" in printed
    assert f"pod/{pod} deleted" in printed
    assert node.client.find(POD, pod, namespace) is None
    return int(process.returncode)
