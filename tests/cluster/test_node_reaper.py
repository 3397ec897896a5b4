"""The reaper's image, built from its Dockerfile and installed with its chart, on a real node."""

from __future__ import annotations

import sys
import time

import pytest

from tests.cluster.apps import JOB, POD
from tests.cluster.client import is_true
from tests.cluster.images import BASE, runtime_image
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.reaper import ACCOUNT, CHART, add_finished_pods, job

pytestmark = pytest.mark.engine

BULK = 5000
_MEMORY = "import pathlib; print(pathlib.Path('/proc/1/status').read_text())"


def finished(node: Node, namespace: str) -> int:
    """Return the number of finished pods."""
    pods = node.client.objects(POD, namespace)
    return sum(each["status"]["phase"] in ("Succeeded", "Failed") for each in pods)


@pytest.mark.promise("Ephemeral GPU", "`make install` installs with Helm what cleans up")
@pytest.mark.ran("Deployment", "ServiceAccount", "Role", "RoleBinding", by=("node", "reaper"))
def test_the_installed_reaper_deletes_the_pods_of_5000_runs(node: Node, node_namespace: str) -> None:
    node.import_image(runtime_image("reaper"))
    where = ["--namespace", node_namespace]
    options = ["--set", "rate=1000", "--set", "resync=1m", "--wait", "--timeout", "3m"]
    node.run("helm", "install", ACCOUNT, str(CHART), *where, *options)
    node.run("helm", "test", ACCOUNT, *where, "--timeout", "3m", "--logs")

    real = job("real", 1, pod_ttl="0")
    (container,) = real["spec"]["template"]["spec"]["containers"]
    container.update(image=BASE, command=["python", "-c", "print('done')"])
    node.client.create(real, node_namespace)
    ended = node.client.wait(JOB, "real", node_namespace, lambda obj: is_true(obj, "Complete"), "complete")
    wait_until(lambda: not finished(node, node_namespace), "the pod of the run is gone")
    assert node.client.find(JOB, "real", node_namespace) is not None

    # Pods of an ended Job that appear later are found by the next look at all of them.
    begin = time.monotonic()
    add_finished_pods(node, node_namespace, ended, BULK)
    created = time.monotonic() - begin
    wait_until(lambda: not finished(node, node_namespace), "5,000 finished pods are gone", 300, every=1)
    deployment = f"deployment/{ACCOUNT}"
    status = node.run("kubectl", "exec", *where, deployment, "--", "python", "-c", _MEMORY).stdout
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    print(
        f"{BULK} pods: created in {created:.0f} s, gone after {time.monotonic() - begin:.0f} s; "
        f"peak {peak // 1024} MiB",
        file=sys.stderr,
    )
    assert peak < 64 << 10
    logs = node.run("kubectl", "logs", *where, deployment).stdout
    assert "warning" not in logs, logs
    node.run("helm", "uninstall", ACCOUNT, *where, "--wait")
