"""The real downloader as a local process, in place of the containers that nodes only simulate."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from runtimes.downloader.tests.hub import Hub
from tests.cluster.client import Object
from tests.cluster.patience import PATIENCE
from tests.cluster.plane import Plane

_PACKAGE = Path(__file__).parents[2] / "runtimes" / "downloader"
_LABEL = re.compile(r"metadata\.labels\['(.+)'\]")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "HF_TOKEN", "HF_ENDPOINT")


def argument(container: Object, name: str) -> str:
    """The value of one of a container's arguments, ``--name=value``."""
    (value,) = [each.partition("=")[2] for each in container["args"] if each.startswith(f"--{name}=")]
    return str(value)


def hub_of(container: Object) -> Hub:
    """Return a Hub on loopback with the model that a container fetches: two files that differ by revision."""
    revision = argument(container, "revision")
    hub = Hub(repo=argument(container, "repo"), revisions={revision: revision})
    hub.add("config.json", b'{"model_type": "tiny"}')
    hub.add("model.safetensors", revision.encode() * 5000)
    return hub


def variables(container: Object, pod: Object) -> dict[str, str]:
    """Return a container's environment variables in a pod, except those from Secrets."""
    found: dict[str, str] = {}
    for entry in container.get("env", []):
        if "value" in entry:
            found[entry["name"]] = entry["value"]
        elif "fieldRef" in entry["valueFrom"]:
            label = _LABEL.fullmatch(entry["valueFrom"]["fieldRef"]["fieldPath"])
            assert label is not None, entry
            found[entry["name"]] = pod["metadata"]["labels"][label[1]]
    return found


def account_variables(plane: Plane, namespace: str, account: str, folder: Path) -> dict[str, str]:
    """Return the variables that lead a program to the API server and the token of a service account.

    Args:
        plane: the plane.
        namespace: of the account.
        account: its name.
        folder: created in place of the folder that a kubelet mounts.
    """
    folder.mkdir()
    client = plane.as_service_account(namespace, account)
    (folder / "token").write_text(client.credentials.token)
    (folder / "namespace").write_text(namespace)
    (folder / "ca.crt").write_bytes(client.ca.read_bytes())
    return {
        "KAIGEN_SA_DIR": str(folder),
        "KUBERNETES_SERVICE_HOST": client.host,
        "KUBERNETES_SERVICE_PORT": str(client.port),
    }


@contextmanager
def running(
    container: Object, folder: Path, env: Mapping[str, str] | None = None, *more: str
) -> Iterator[subprocess.Popen[str]]:
    """Run a container's rendered command with a local folder in place of the volume; it ends with the block.

    Args:
        container: one whose image is the downloader, perhaps with the folder of a revision.
        folder: in place of the mounted volume.
        env: variables.
        more: further arguments.
    """
    arguments = [
        f"--dest={folder / argument(container, 'identity')}" if each.startswith("--dest=") else each
        for each in container["args"]
    ]
    kept = {name: value for name, value in os.environ.items() if name.upper() not in _PROXIES}
    process = subprocess.Popen(
        [sys.executable, "-m", "kaigen_downloader", *arguments, *more],
        env=kept | {"PYTHONPATH": str(_PACKAGE), "KAIGEN_POLL": "0.05"} | dict(env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finish(process: subprocess.Popen[str], timeout: float = PATIENCE) -> str:
    """Wait for a process that must succeed.

    Returns:
        What it printed.
    """
    printed, _ = process.communicate(timeout=timeout)
    assert process.returncode == 0, printed
    return printed
