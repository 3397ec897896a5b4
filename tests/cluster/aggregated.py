"""API servers behind the one of a plane, such as those of metrics: their certificates and their registration."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

from tests.cluster.client import is_true
from tests.cluster.plane import Plane

HOST = "127.0.0.1"
_API_SERVICE = "apiregistration.k8s.io/v1/APIService"


def make_certificate(plane: Plane, service: str, namespace: str) -> Path:
    """Return a folder with the certificate of a server: `tls.crt`, `tls.key` and `ca.crt`.

    Args:
        plane: Where it serves.
        service: Name of its Service.
        namespace: Namespace of its Service.
    """
    folder = plane.folder / service
    folder.mkdir()
    pair = plane.certificate(service, ["localhost", HOST, f"{service}.{namespace}.svc"])
    for name, file in (("tls.crt", pair.cert), ("tls.key", pair.key), ("ca.crt", plane.client.ca)):
        shutil.copy(file, folder / name)
    return folder


def register(plane: Plane, api: str, service: str, namespace: str, port: int) -> None:
    """Let the API server forward the requests of an API group, and wait until it does.

    Args:
        plane: Where.
        api: Version and group, as in `v1beta1.metrics.k8s.io`.
        service: Name of the Service that is created.
        namespace: Its namespace.
        port: Where the server listens on loopback.
    """
    plane.client.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service, "namespace": namespace},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
    )
    version, _, group = api.partition(".")
    plane.client.create(
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": api},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": service, "namespace": namespace, "port": port},
                "caBundle": base64.b64encode(plane.client.ca.read_bytes()).decode(),
            },
        }
    )

    def is_available() -> bool:
        return is_true(plane.client.get(_API_SERVICE, api), "Available")

    plane.processes.wait_until(is_available, f"{service} serves {api}")
