"""What kaigen renders, run on a real node: containers start, volumes are mounted, requests are answered."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from kaigen.pipeline.result import Compiled
from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from tests.cases import write_chart
from tests.cluster.apps import JOB, POD, client_pod, compiled, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.patience import PATIENCE
from tests.cluster.processes import wait_until

WEIGHTS = b"weights " * 200_000


def chain(hub: Hub) -> list[Object]:
    """A Model, a Job that reads it, and a Topology that serves it."""
    source = {"repo": REPO, "revision": COMMIT, "endpoint": hub.url}
    count = "import os; print(os.path.getsize('/model/model.safetensors'))"
    small = {"cpu": "100m", "memory": "128Mi"}
    return [
        spec(
            "Model",
            "tiny",
            source={"huggingFace": source},
            store={"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "local-path"}},
        ),
        spec("Job", "count", image=BASE, model="tiny", command=["python", "-c", count], resources=small),
        spec(
            "Topology",
            "files",
            engine="container",
            image=BASE,
            model="tiny",
            command=["python", "-m", "http.server", "8000", "--directory", "/model"],
            port=8000,
            probes={"ready": "/config.json"},
            resources=small,
        ),
    ]


def install(node: Node, apps: dict[str, Compiled], form: str, folder: Path) -> None:
    """Install apps, those that read a model before the model: the order of files is not an order of work."""
    for name, app in sorted(apps.items()):
        if form == "manifests":
            for rendered in app.objects:
                node.client.apply(rendered.body)
        else:
            chart = write_chart(folder, app)
            node.run("helm", "install", name, str(chart), "--namespace", app.app.namespace)


def run_client(node: Node, namespace: str, code: str) -> str:
    """Run Python in a pod of its own.

    Returns:
        What it printed.
    """
    return run_pod(node, namespace, client_pod(code))


def run_pod(node: Node, namespace: str, pod: Object, timeout: float = PATIENCE) -> str:
    """Run a pod to its end.

    Args:
        node: the node.
        namespace: of the pod.
        pod: the pod.
        timeout: seconds.

    Returns:
        What it printed.
    """
    name = node.client.create(pod, namespace)["metadata"]["name"]
    over = {"Succeeded", "Failed"}
    node.client.wait(POD, name, namespace, lambda found: found["status"]["phase"] in over, "over", timeout=timeout)
    printed = node.run("kubectl", "logs", "--namespace", namespace, name).stdout
    assert node.client.get(POD, name, namespace)["status"]["phase"] == "Succeeded", printed
    return printed


@pytest.mark.ran("PersistentVolumeClaim", by=("node", "downloader"))
@pytest.mark.ran("Job", "Deployment", "Service", by="node")
@pytest.mark.parametrize(
    "form", ["manifests", pytest.param("chart", marks=pytest.mark.ran("Pod", "Role", "RoleBinding", by="node"))]
)
def test_a_model_is_fetched_read_by_a_job_and_served(
    node: Node, node_namespace: str, hub: Hub, tmp_path: Path, form: str
) -> None:
    apps = compiled(tmp_path / "specs", chain(hub), node_namespace, "generic")
    install(node, apps, form, tmp_path / "charts")
    complete = partial(is_true, condition="Complete")
    node.client.wait(JOB, job_name(apps["tiny"]), node_namespace, complete, "complete")
    job = job_name(apps["count"])
    node.client.wait(JOB, job, node_namespace, complete, "complete")
    assert node.run("kubectl", "logs", "--namespace", node_namespace, f"job/{job}").stdout.strip() == str(len(WEIGHTS))
    node.client.wait(
        "apps/v1/Deployment",
        "files",
        node_namespace,
        lambda found: found.get("status", {}).get("readyReplicas") == 1,
        "ready",
    )
    read = "import urllib.request as u; print(len(u.urlopen('http://files/model.safetensors').read()))"
    assert run_client(node, node_namespace, read).strip() == str(len(WEIGHTS))
    if form == "chart":
        for name in sorted(apps):
            node.run("helm", "test", name, "--namespace", node_namespace, "--timeout", "120s")


def test_two_nodes_run_pods_side_by_side(node: Node, node_namespace: str) -> None:
    with Node(custom_kinds=False) as other:
        other.make_namespace("pods")
        for _ in range(2):
            assert run_client(other, "pods", "print('there')") == "there\n"
            assert run_client(node, node_namespace, "print('here')") == "here\n"


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_nothing_is_left_of_a_node(killed: bool) -> None:
    script = (
        "import sys, time\n"
        "from tests.cluster.node import Node\n"
        "from tests.cluster.test_node import run_client\n"
        "node = Node(custom_kinds=False)\n"
        "node.make_namespace('pods')\n"
        "run_client(node, 'pods', 'print(1)')\n"
        "print(node.folder, node.network.name, node.processes.pid, flush=True)\n"
        "sys.stdin.read() and node.stop()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder, network, supervisor = process.stdout.readline().split()
        assert network in subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
        if killed:
            process.kill()
        else:
            process.communicate("stop")
    wait_until(lambda: not Path(f"/proc/{supervisor}").exists(), "the supervisor ends")
    assert network not in subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert folder not in Path("/proc/mounts").read_text()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{network}"))
    assert not (Path(folder) / "data").exists()
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(folder.encode() in command for command in running)
