"""Checks of the URLs in the fields of specs: none of a pod itself, of link-local addresses, or of a cloud's metadata.

A NetworkPolicy that kaigen makes of a URL would open the address to every container of the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

from msgspec import Meta, Struct
from msgspec.structs import fields

from kaigen.compile.context import Context
from kaigen.compile.problems import Problems
from kaigen.config.globs import is_granted
from kaigen.config.tenant_settings import Tenant, tenant_of_file, tenant_of_namespace
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kinds.sources import Oci
from kaigen.kubernetes.images import parse_image
from kaigen.kubernetes.names import is_system_namespace
from kaigen.kubernetes.server_hosts import host_of, is_private, is_reserved, namespace_of

if TYPE_CHECKING:
    from kaigen.config.network import Network


def has_broken_url(block: Any) -> bool:
    """Return whether a spec has a URL that cannot be taken apart, which `check_urls` reports: it cannot be compiled."""
    return any(_is_broken(url) for url, _ in _urls(block, ()))


def _is_broken(url: str) -> bool:
    try:
        _ = urlsplit(url).port if "://" in url else None
    except ValueError:
        return True
    return False


def check_urls(block: Any, source: str, namespace: str, context: Context, problems: Problems) -> None:
    """Report URLs of addresses that no spec may name, and of servers that the spec's tenant is not granted.

    Args:
        block: the spec.
        source: its file, relative to the repository.
        namespace: of its app.
        context: has the tenants, and what kaigen.yaml allows.
        problems: collects the errors.
    """
    for problem in url_problems(_urls(block, ()), source, namespace, context):
        problems.add(problem)


def url_problems(
    urls: Iterable[tuple[str, FieldPath]], source: str, namespace: str, context: Context
) -> Iterator[Problem]:
    """Return errors for URLs that a spec may not name.

    Args:
        urls: each with its place.
        source: file of the spec, relative to the repository.
        namespace: of its app.
        context: has the tenants, and what kaigen.yaml allows.
    """
    tenant = tenant_of_file(source, context.config.tenants) or tenant_of_namespace(namespace, context.config.tenants)
    own = _own_hosts(context.config.network)
    for url, path in urls:
        host = "" if _is_broken(url) else host_of(url if "://" in url else f"https://{parse_image(url).registry}")
        if host in own or is_granted(host, context.config.allow.servers):
            continue
        if is_reserved(host):
            yield Problem(
                "KG0421",
                f"`{url}` is at an address of the pod itself, of the node, or of the cloud's metadata"
                if host
                else f"the host or port of `{url}` is not understood by all clients alike",
                path,
                "name a server by its host name or usual address, or let the platform team add the host to "
                "`allow.servers` in kaigen.yaml",
            )
        elif tenant is not None and not _may_reach(host, tenant, context):
            yield Problem(
                "KG0582",
                f"tenant `{tenant.name}` is not granted the server `{url}`",
                path,
                f"remove it, or add it to `tenants.{tenant.name}.servers` in kaigen.yaml",
            )


def _own_hosts(network: Network | None) -> frozenset[str]:
    """Return the hosts of kaigen.yaml itself."""
    if network is None:
        return frozenset()
    urls = (network.hub_endpoint, network.http_proxy, network.https_proxy, network.package_index)
    return frozenset(host for url in urls if url and (host := host_of(url)))


def _may_reach(host: str, tenant: Tenant, context: Context) -> bool:
    """Return whether a server is outside the cluster, in a namespace of the tenant, or granted."""
    place = namespace_of(host) or _short_namespace(host, context)
    if not place and not is_private(host):
        return True
    return place in tenant.namespaces or is_granted(host, tenant.servers())


def _short_namespace(host: str, context: Context) -> str:
    """Return the namespace at the end of a short name, `NAME.NAMESPACE`, if it is one that kaigen knows."""
    _, dot, last = host.rpartition(".")
    known = dot and (
        tenant_of_namespace(last, context.config.tenants) or is_system_namespace(last) or last == "default"
    )
    return last if known else ""


def _urls(value: object, path: FieldPath) -> Iterator[tuple[str, FieldPath]]:
    """Yield the texts of the fields of a spec that must be URLs, and the references of its artifacts."""
    if isinstance(value, Oci):
        yield value.ref, (*path, "ref")
    if isinstance(value, Struct):
        for name, written, is_url in _fields(type(value)):
            item, place = getattr(value, name), (*path, written)
            if is_url and isinstance(item, str):
                yield item, place
            elif not isinstance(item, str):
                yield from _urls(item, place)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _urls(item, (*path, number))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _urls(item, (*path, str(key)))


@cache
def _fields(model: type[Struct]) -> tuple[tuple[str, str, bool], ...]:
    """Return the fields of a model, their names in documents, and whether their texts must be URLs."""
    return tuple((each.name, each.encode_name, is_url_type(each.type)) for each in fields(model))


def is_url_type(annotation: object) -> bool:
    """Return whether the texts of a field's type must be URLs."""
    if isinstance(annotation, Meta):
        return (annotation.pattern or "").startswith(("^https://", "^https?://"))
    return any(map(is_url_type, (*get_args(annotation), *getattr(annotation, "__metadata__", ()))))
