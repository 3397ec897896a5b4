"""Kyverno's admission controller on a plane, with its webhooks."""

from __future__ import annotations

import http.client
import ssl
from functools import partial

from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports
from tests.cluster.tools.parts import KINDS, locate_part

_HOST = "127.0.0.1"
_NAMESPACE = "kyverno"
_WEBHOOKS = tuple(f"admissionregistration.k8s.io/v1/{kind}WebhookConfiguration" for kind in ("Mutating", "Validating"))


class Kyverno:
    """A running Kyverno."""

    def __init__(self, plane: Plane) -> None:
        """Start Kyverno and wait until it serves.

        Args:
            plane: Where.
        """
        self._plane = plane
        program = locate_part("kyverno")
        plane.make_namespace(_NAMESPACE)
        for folder in sorted(each for each in (program.parent / KINDS).iterdir() if each.is_dir()):
            plane.install_kinds(folder)
        for name in ("kyverno", "kyverno-metrics"):
            plane.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}, _NAMESPACE)
        (port,) = free_ports(1)
        plane.start(
            "kyverno",
            str(program),
            f"--kubeconfig={plane.kubeconfig_for('kyverno')}",
            f"--serverIP={_HOST}:{port}",
            f"--webhookServerHost={_HOST}",
            f"--webhookServerPort={port}",
            "--caSecretName=kyverno-ca",
            "--tlsSecretName=kyverno-tls",
            "--controllerRuntimeMetricsAddress=0",
            "--disableMetrics=true",
            "--admissionReports=false",
            "--clientRateLimitQPS=500",
            "--clientRateLimitBurst=1000",
            "--loggingFormat=json",
            env={
                "INIT_CONFIG": "kyverno",
                "METRICS_CONFIG": "kyverno-metrics",
                "KYVERNO_NAMESPACE": _NAMESPACE,
                "KYVERNO_SERVICEACCOUNT_NAME": "kyverno",
                "KYVERNO_DEPLOYMENT": "kyverno",
                "KYVERNO_POD_NAME": "kyverno",
                "KYVERNO_SVC": "kyverno-svc",
            },
        )
        plane.processes.wait_until(partial(_is_ready, port), "Kyverno serves its webhooks")

    def skip(self, *filters: str) -> None:
        """Set which objects Kyverno skips, as `config.resourceFilters` of its Helm chart does.

        Args:
            filters: `[KIND,NAMESPACE,NAME]`.
        """
        change = {"data": {"resourceFilters": "".join(filters)}}
        self._plane.client.patch("v1/ConfigMap", "kyverno", _NAMESPACE, change)

    def close(self) -> None:
        """End Kyverno and remove its webhooks, which would refuse everything."""
        self._plane.processes.stop("kyverno")
        client = self._plane.client
        for kind in _WEBHOOKS:
            for each in client.objects(kind, labels="webhook.kyverno.io/managed-by=kyverno"):
                client.delete(kind, each["metadata"]["name"])


def _is_ready(port: int) -> bool:
    """Return whether Kyverno answers with its certificate, which it makes after it listens."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(_HOST, port, context=context, timeout=5)
    try:
        connection.request("GET", "/health/readiness")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()
