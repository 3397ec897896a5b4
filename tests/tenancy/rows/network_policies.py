"""What NetworkPolicies open."""

from __future__ import annotations

from typing import Any

from tests.tenancy.objects import object_of
from tests.tenancy.tenants import Body

_NAMESPACE = "kubernetes.io/metadata.name"

METADATA = (
    "100.100.100.200/32",
    "168.63.129.16/32",
    "169.254.170.2/32",
    "192.0.0.192/32",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
    "fd00:100::100:200/128",
    "fd00:c1::a9fe:a9fe/128",
    "fd00:42::42/128",
    "fd00:a9fe:a9fe::1/128",
    "64:ff9b::a9fe:a9fe/128",
    "2002:a9fe:a9fe::/128",
    "fe80::a9fe:a9fe/128",
)
"""Addresses of services of clouds with credentials of nodes."""


def policy(name: str = "x", selected: Body | None = None, **directions: list[Any]) -> Body:
    """Return a NetworkPolicy with rules."""
    selector = {"matchLabels": {"app": "x"}} if selected is None else selected
    types = [direction.capitalize() for direction in directions]
    spec = {"podSelector": selector, "policyTypes": types, **directions}
    return object_of("networking.k8s.io/v1", "NetworkPolicy", name, spec=spec)


def namespace_of(name: str, **more: object) -> Body:
    """Return the peer of all pods of a namespace."""
    return {"namespaceSelector": {"matchLabels": {_NAMESPACE: name}}, **more}


def port(number: int, **more: object) -> list[Body]:
    """Return one port of a rule."""
    return [{"port": number, "protocol": "TCP", **more}]


def address(cidr: str) -> Body:
    """Return the peer of a range of addresses."""
    return {"ipBlock": {"cidr": cidr}}


def _selected_by(operator: str, *values: str) -> Body:
    expression = {"key": _NAMESPACE, "operator": operator, "values": [*values]}
    return {"namespaceSelector": {"matchExpressions": [expression]}}


def _dns() -> Body:
    return namespace_of("kube-system", podSelector={"matchLabels": {"k8s-app": "kube-dns"}})


DENIED: dict[str, tuple[Body, str]] = {
    **{
        f"network: {case}": (policy(**directions), what)
        for case, directions, what in (
            ("everything in", {"ingress": [{}]}, "from everywhere"),
            ("everything out", {"egress": [{}]}, "to everywhere"),
            ("a port anywhere", {"egress": [{"ports": port(443)}]}, "to everywhere"),
            ("all ports of a protocol in", {"ingress": [{"ports": [{"protocol": "TCP"}]}]}, "from everywhere"),
            ("a range of ports in", {"ingress": [{"ports": port(1, endPort=65535)}]}, "from everywhere"),
            ("another namespace in", {"ingress": [{"from": [namespace_of("team-b")]}]}, "namespace `team-b`"),
            ("another namespace out", {"egress": [{"to": [namespace_of("team-b")]}]}, "namespace `team-b`"),
            ("all namespaces", {"egress": [{"to": [{"namespaceSelector": {}}]}]}, "other namespaces"),
            (
                "namespaces by a label",
                {"egress": [{"to": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]}]},
                "other namespaces",
            ),
            ("all but a namespace", {"egress": [{"to": [_selected_by("NotIn", "team-b")]}]}, "other namespaces"),
            ("two namespaces", {"egress": [{"to": [_selected_by("In", "team-a", "team-b")]}]}, "other namespaces"),
            ("all addresses", {"egress": [{"to": [address("0.0.0.0/0")]}]}, "`0.0.0.0/0`"),
            ("all addresses of IPv6", {"egress": [{"to": [address("::/0")]}]}, "`::/0`"),
            (
                "metadata",
                {"egress": [{"to": [address("169.254.169.254/32")], "ports": port(80)}]},
                "`169.254.169.254/32`",
            ),
            ("a wider range", {"egress": [{"to": [address("10.0.0.0/8")]}]}, "`10.0.0.0/8`"),
            (
                "another peer of a rule",
                {"egress": [{"to": [namespace_of("team-a"), address("192.0.2.1/32")]}]},
                "`192.0.2.1/32`",
            ),
            ("DNS on every port", {"egress": [{"to": [_dns()]}]}, "namespace `kube-system`"),
            ("another port of DNS", {"egress": [{"to": [_dns()], "ports": port(443)}]}, "namespace `kube-system`"),
        )
    },
    "network: a port of all pods": (policy(selected={}, ingress=[{"ports": port(80)}]), "from everywhere"),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    **{
        f"network: {case}": policy(**directions)
        for case, directions in (
            ("nothing", {"ingress": [], "egress": []}),
            ("a port", {"ingress": [{"ports": port(8000)}]}),
            ("a port for a namespace", {"ingress": [{"ports": port(80), "from": [namespace_of("team-b")]}]}),
            ("its own pods", {"egress": [{"to": [{"podSelector": {}}]}]}),
            ("its own namespace", {"egress": [{"to": [namespace_of("team-a")]}]}),
            ("its own namespaces", {"ingress": [{"from": [_selected_by("In", "team-a")]}]}),
            ("DNS", {"egress": [{"to": [_dns()], "ports": port(53)}]}),
            ("a namespace", {"egress": [{"to": [namespace_of("monitoring")]}]}),
            ("a range", {"egress": [{"to": [address("10.20.1.0/24")]}]}),
            ("an address", {"egress": [{"to": [address("10.20.1.1/32")], "ports": port(5432)}]}),
        )
    },
}
"""Objects that the tenant may have."""
