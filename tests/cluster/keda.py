"""KEDA on a plane or a real node: its operator, and its adapter that serves metrics to HorizontalPodAutoscalers."""

from __future__ import annotations

from functools import partial

from tests.cluster.aggregated import HOST, make_certificate, register
from tests.cluster.plane import Plane
from tests.cluster.processes import free_ports
from tests.cluster.tools.parts import KINDS, locate_part

_NAMESPACE = "keda"
_SERVICE = "keda-operator-metrics-apiserver"


class Keda:
    """A running KEDA. It ends with its plane."""

    def __init__(self, plane: Plane) -> None:
        """Start KEDA and wait until the API server serves its metrics.

        Args:
            plane: Where.
        """
        operator, adapter = locate_part("keda-operator"), locate_part("keda-adapter")
        plane.make_namespace(_NAMESPACE)
        plane.install_kinds(operator.parent / KINDS)
        certificates = make_certificate(plane, _SERVICE, _NAMESPACE)
        metrics, port, *others = free_ports(5)
        plane.start(
            "keda-operator",
            str(operator),
            f"--cert-dir={certificates}",
            f"--metrics-service-bind-address={HOST}:{metrics}",
            f"--metrics-bind-address={HOST}:{others[0]}",
            f"--health-probe-bind-address={HOST}:{others[1]}",
            f"--kubeconfig={plane.kubeconfig_for('keda-operator')}",
            env={"POD_NAMESPACE": _NAMESPACE, "WATCH_NAMESPACE": "", "KEDA_CLUSTER_OBJECT_NAMESPACE": _NAMESPACE},
        )
        plane.processes.wait_until(partial(plane.listens, metrics), "KEDA's operator serves metrics")
        user = plane.kubeconfig_for("keda-adapter")
        plane.start(
            "keda-adapter",
            str(adapter),
            *(f"--{use}kubeconfig={user}" for use in ("", "lister-", "authentication-", "authorization-")),
            f"--bind-address={HOST}",
            f"--secure-port={port}",
            f"--port={others[2]}",
            f"--metrics-service-address={HOST}:{metrics}",
            f"--cert-dir={certificates}",
            f"--tls-cert-file={certificates / 'tls.crt'}",
            f"--tls-private-key-file={certificates / 'tls.key'}",
            f"--client-ca-file={certificates / 'ca.crt'}",
            env={"POD_NAMESPACE": _NAMESPACE, "WATCH_NAMESPACE": ""},
        )
        register(plane, "v1beta1.external.metrics.k8s.io", _SERVICE, _NAMESPACE, port)
