"""The real reaper as a local process, with the roles of its chart, and objects that expire."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests import helm
from tests.cluster.client import Object
from tests.cluster.downloader import account_variables
from tests.cluster.patience import PATIENCE
from tests.cluster.plane import Plane
from tests.cluster.simulate import pod_spec

CHART = Path(__file__).parents[2] / "charts" / "kaigen-reaper"
ACCOUNT = "kaigen-reaper"
EXPIRES = {"kaigen.dev/expires": "true"}
_PACKAGE = Path(__file__).parents[2] / "runtimes" / "reaper"
_RUNS = count()
_ACCESS = ("ServiceAccount", "Role", "RoleBinding")


def install_access(plane: Plane, namespace: str, values: Mapping[str, Any]) -> list[Object]:
    """Create the service account and the roles of the chart.

    Returns:
        The roles.
    """
    objects = [each for each in helm.template(CHART, ACCOUNT, namespace, values) if each["kind"] in _ACCESS]
    for each in objects:
        plane.client.apply(each)
    return [each for each in objects if each["kind"] == "Role"]


@contextmanager
def running(plane: Plane, namespace: str, folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `kaigen-reaper run` as the chart's service account; it ends with the block.

    Args:
        plane: the plane.
        namespace: of the account.
        folder: created for its token.
        arguments: of `run`.
    """
    env = account_variables(plane, namespace, ACCOUNT, folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "kaigen_reaper", "run", *arguments],
        env={**os.environ, "PYTHONPATH": str(_PACKAGE), "KAIGEN_RECHECK": "0.5", "KAIGEN_RETRY": "0.5", **env},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run_to_end(plane: Plane, namespace: str, account: str, folder: Path, *arguments: str) -> str:
    """Run a command of `kaigen-reaper` that ends by itself, and return what it printed.

    Args:
        plane: the plane.
        namespace: of the account.
        account: ServiceAccount of the pod that it runs in place of.
        folder: where its token is written.
        arguments: the command.
    """
    env = account_variables(plane, namespace, account, folder / f"account-{next(_RUNS)}")
    done = subprocess.run(
        [sys.executable, "-m", "kaigen_reaper", *arguments],
        env=os.environ | env | {"PYTHONPATH": str(_PACKAGE), "NAMESPACE": namespace, "KAIGEN_POLL": "0.1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def job(name: str, pods: int, **annotations: str) -> Object:
    """Return a Job whose pods expire. Annotations are without prefix, with `_` for `-`."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": EXPIRES,
            "annotations": {f"kaigen.dev/{key.replace('_', '-')}": text for key, text in annotations.items()},
        },
        "spec": {
            "completions": pods,
            "parallelism": pods,
            "template": {"spec": pod_spec() | {"restartPolicy": "Never"}},
        },
    }


def volume(name: str, **annotations: str) -> Object:
    """Return a volume that expires."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "labels": EXPIRES,
            "annotations": {f"kaigen.dev/{key.replace('_', '-')}": text for key, text in annotations.items()},
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }


def add_finished_pods(plane: Plane, namespace: str, owner: Object, number: int) -> None:
    """Create finished pods of a Job, which no node ran."""
    metadata = owner["metadata"]
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}

    def add(index: int) -> None:
        name = f"{metadata['name']}-bulk-{index:05}"
        body: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {"batch.kubernetes.io/controller-uid": metadata["uid"]},
                "ownerReferences": [{**reference, "controller": True}],
            },
            "spec": pod_spec() | {"schedulerName": "none", "restartPolicy": "Never"},
        }
        plane.client.create(body, namespace)
        plane.client.patch("v1/Pod", name, namespace, {"status": {"phase": "Succeeded"}}, "status")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(number)))
