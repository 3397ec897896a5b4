"""Who may reach an app's pods, and by which names."""

from __future__ import annotations

from kaigen.compile.app import Object, Setting, Tree
from kaigen.compile.bricks import settings
from kaigen.compile.bricks.frame import Frame


def network_switch() -> Setting:
    """Whether the app's NetworkPolicy exists."""
    return settings.flag(
        "networkPolicy.enabled", True, "Refuse connections to the app's pods from elsewhere."
    )


def network_policy(frame: Frame, *, among_themselves: bool = False) -> Object:
    """Refuse connections to the app's pods; pods that work together may reach each other."""
    peers: Tree = [{"from": [{"podSelector": {"matchLabels": frame.selector()}}]}]
    return Object(
        role="networkpolicy",
        when=network_switch(),
        body={
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": frame.metadata("", "network"),
            "spec": {
                "podSelector": {"matchLabels": frame.selector()},
                "policyTypes": ["Ingress"],
                # No empty list: the API server does not keep one, and would take each apply for a change.
                **({"ingress": peers} if among_themselves else {}),
            },
        },
    )


def headless_service(frame: Frame, component: str, port: int) -> Object:
    """Stable host names for pods that work together, before they are ready too."""
    return Object(
        role="service",
        body={
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": frame.metadata("-nodes", component),
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": frame.selector(component),
                "ports": [{"name": "rendezvous", "port": port, "targetPort": port, "protocol": "TCP"}],
            },
        },
    )
