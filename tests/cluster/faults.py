"""Faults for tests: a slow store, and a webhook that does not answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.client import ApiError, Client, Object
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until

_WEBHOOK = "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration"
# Longer than a request usually waits for etcd, shorter than the API server's timeout.
_PAUSED_S, _RUNNING_S = 0.7, 0.25


@contextmanager
def slow(plane: Plane, name: str = "etcd") -> Iterator[None]:
    """Pause a process most of the time, as if its disk were overloaded."""
    ended = threading.Event()

    def alternate() -> None:
        while not ended.is_set():
            plane.processes.pause(name)
            ended.wait(_PAUSED_S)
            plane.processes.resume(name)
            ended.wait(_RUNNING_S)

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def webhook_down(plane: Plane, namespace: str) -> Iterator[None]:
    """Install an admission webhook for the Jobs of a namespace whose server does not exist; remove it at the end."""
    client = plane.client
    configuration: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"down.{namespace}"},
        "webhooks": [
            {
                "name": "down.kaigen.dev",
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": 1,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": ["batch"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["jobs"],
                    }
                ],
            }
        ],
    }
    client.create(configuration)
    try:
        wait_until(lambda: _is_called(client, namespace), "the API server calls the webhook", 15)
        yield
    finally:
        client.delete(_WEBHOOK, f"down.{namespace}")


def _is_called(client: Client, namespace: str) -> bool:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.invalid/probe:1"}]}
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "probe"},
        "spec": {"template": {"spec": pod}},
    }
    try:
        client.create(job, namespace, dry_run=True)
    except ApiError as error:
        return "failed calling webhook" in error.message
    return False
