"""Proxies in front of a service that limit how long a request may take, or how large it may be."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


class IngressLimit(Struct, frozen=True):
    """The limit of an Ingress controller.

    Attributes:
        annotations: annotations of an Ingress that raise the limit.
        limit: the limit where no annotation raises it.
        fix: what raises it then.
    """

    annotations: Mapping[str, str]
    limit: str = ""
    fix: str = ""


class GatewayLimit(Struct, frozen=True):
    """A limit of a Gateway controller that an HTTPRoute does not raise.

    Attributes:
        limit: the limit.
        fix: what raises it.
    """

    limit: str
    fix: str


def ingress_limit(ingress_class: str | None) -> IngressLimit | None:
    """Return the limit of an IngressClass; None for a class that is unknown or has none."""
    for entry in yaml_files.load("proxies")["ingress"]:
        if ingress_class in entry["classes"]:
            return IngressLimit(entry["annotations"], entry.get("limit", ""), entry.get("fix", ""))
    return None


def gateway_limit(gateway_class: str | None, profile: str) -> GatewayLimit | None:
    """Return the limit of a Gateway that no timeout of an HTTPRoute raises; None for other Gateways.

    Args:
        gateway_class: its GatewayClass; None when it is unknown.
        profile: name of the cluster's profile.
    """
    for entry in yaml_files.load("proxies")["gateways"]:
        if gateway_class.startswith(entry["prefix"]) if gateway_class else profile == entry["profile"]:
            return GatewayLimit(entry["limit"], entry["fix"])
    return None


def body_limit(gateway_class: str | None) -> GatewayLimit | None:
    """Return how large a request may be behind a Gateway of this class; None for other classes."""
    for entry in yaml_files.load("proxies")["bodies"]:
        if gateway_class is not None and gateway_class.startswith(entry["prefix"]):
            return GatewayLimit(entry["limit"], entry["fix"])
    return None
