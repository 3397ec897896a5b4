"""metrics-server next to a real node: the CPU that pods use, as its kubelet measures it."""

from __future__ import annotations

from tests.cluster.aggregated import HOST, make_certificate, register
from tests.cluster.node import Node
from tests.cluster.processes import free_ports
from tests.cluster.tools.parts import locate_part

_NAMESPACE = "kube-system"
_NAME = "metrics-server"


class MetricsServer:
    """A running metrics-server. It ends with the node."""

    def __init__(self, node: Node) -> None:
        """Start it and wait until the API server serves its metrics.

        Args:
            node: where.
        """
        (port,) = free_ports(1)
        certificate = make_certificate(node, _NAME, _NAMESPACE)
        user = node.kubeconfig_for(_NAME)
        node.start(
            _NAME,
            str(locate_part(_NAME)),
            *(f"--{use}kubeconfig={user}" for use in ("", "authentication-", "authorization-")),
            f"--bind-address={HOST}",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate / 'tls.crt'}",
            f"--tls-private-key-file={certificate / 'tls.key'}",
            f"--client-ca-file={certificate / 'ca.crt'}",
            f"--kubelet-certificate-authority={certificate / 'ca.crt'}",
            "--kubelet-preferred-address-types=InternalIP",
            "--kubelet-request-timeout=5s",
            "--metric-resolution=10s",
        )
        register(node, "v1beta1.metrics.k8s.io", _NAME, _NAMESPACE, port)
