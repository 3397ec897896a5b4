"""Traefik next to a real node: it serves Ingresses and the routes of Gateways on the node's address."""

from __future__ import annotations

from tests.cluster.client import Object
from tests.cluster.node import Node

CLASS = "traefik"
"""Name of its IngressClass and GatewayClass."""

_PORT = 80
_GATEWAY = "gateway.networking.k8s.io"


def _policies() -> Object:
    """Return the definition of BackendTLSPolicies, which Traefik must be able to list; there are none."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}},
    }
    names = {"kind": "BackendTLSPolicy", "plural": "backendtlspolicies", "singular": "backendtlspolicy"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"backendtlspolicies.{_GATEWAY}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {"group": _GATEWAY, "scope": "Namespaced", "names": names, "versions": [version]},
    }


class Traefik:
    """A running Traefik. It ends with the node."""

    def __init__(self, node: Node) -> None:
        """Start it, with its classes.

        Args:
            node: where.
        """
        for kind, group, field, controller in (
            ("IngressClass", "networking.k8s.io", "controller", "traefik.io/ingress-controller"),
            ("GatewayClass", _GATEWAY, "controllerName", "traefik.io/gateway-controller"),
        ):
            node.client.create(
                {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": CLASS}, "spec": {field: controller}}
            )
        node.client.create(_policies())
        host = node.network.host
        node.start(
            "traefik",
            str(node.program("traefik")),
            f"--entryPoints.web.address={host}:{_PORT}",
            "--providers.kubernetesIngress=true",
            f"--providers.kubernetesIngress.ingressEndpoint.ip={host}",
            "--providers.kubernetesGateway=true",
            f"--providers.kubernetesGateway.statusAddress.ip={host}",
            "--providers.providersThrottleDuration=500ms",
            "--global.checkNewVersion=false",
            "--global.sendAnonymousUsage=false",
            env={"KUBECONFIG": str(node.kubeconfig_for("traefik"))},
        )
        node.processes.wait_until(lambda: node.listens(_PORT, host), "Traefik listens")
