"""Faults that a cluster lives through: a store that answers late, and a webhook that nobody answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.client import ApiError, Client, Object
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until

_WEBHOOK = "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration"
# Longer than any request is used to wait for etcd, shorter than what makes the API server give up on one.
_HELD_S, _LET_GO_S = 0.7, 0.25


@contextmanager
def slow(plane: Plane, name: str = "etcd") -> Iterator[None]:
    """A process that for most of the time does not answer, as on a disk that is overloaded."""
    ended = threading.Event()

    def hold() -> None:
        while not ended.is_set():
            plane.processes.pause(name)
            ended.wait(_HELD_S)
            plane.processes.resume(name)
            ended.wait(_LET_GO_S)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def webhook_down(plane: Plane, namespace: str) -> Iterator[None]:
    """An admission webhook for Jobs of a namespace that must be asked and is not there; mended at the end."""
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
        wait_until(lambda: _is_asked(client, namespace), "the API server takes up the webhook", 15)
        yield
    finally:
        client.delete(_WEBHOOK, f"down.{namespace}")


def _is_asked(client: Client, namespace: str) -> bool:
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
