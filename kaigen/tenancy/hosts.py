"""The hosts that an object asks a controller to serve or to register in the DNS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kaigen.kubernetes.manifest import ALL, Object, Step, mapping, type_of, values_at
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import controllers

GATEWAY_GROUP = "gateway.networking.k8s.io"
INGRESS = "Ingress.networking.k8s.io"
HOST_ROUTES = (f"HTTPRoute.{GATEWAY_GROUP}", f"GRPCRoute.{GATEWAY_GROUP}", f"TLSRoute.{GATEWAY_GROUP}")
"""Routes that have hosts."""

INGRESS_HOSTS: Step = ("spec", "rules", ALL, "host")
ROUTE_HOSTS: Step = ("spec", "hostnames", ALL)
_PATHS: Mapping[str, Step] = {INGRESS: INGRESS_HOSTS} | dict.fromkeys(HOST_ROUTES, ROUTE_HOSTS)


def hosts_of(obj: Object) -> Iterator[str]:
    """Yield the hosts of an Ingress or a route, and those that annotations of any object name."""
    yield from annotated_hosts(mapping(mapping(obj.get("metadata")).get("annotations")))
    if (steps := _PATHS.get(type_of(obj))) is not None:
        yield from (str(value) for _, value in values_at(obj, steps))


def annotated_hosts(annotations: Mapping[str, object]) -> Iterator[str]:
    """Yield the hosts of annotations by which controllers serve or register hosts."""
    if not annotations:
        return
    for key in controllers.host_keys():
        value = annotations.get(key)
        if isinstance(value, str):
            yield from value.replace(",", " ").split()
