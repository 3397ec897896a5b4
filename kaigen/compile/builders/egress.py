"""Egress of pods that download: NetworkPolicies for the servers that their sources and stores are on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.bucket_access import cloud_server
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.network import network_switch
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.field_expressions import Items
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath, Json
from kaigen.kinds.blocks import FileSource
from kaigen.kinds.bucket import Bucket, FilledBucket
from kaigen.kinds.sources import S3
from kaigen.kubernetes.images import parse_image
from kaigen.kubernetes.metadata_keys import AZURE_IDENTITY
from kaigen.kubernetes.server_hosts import NEVER, Address, address_of, host_of, is_reserved, namespace_of

if TYPE_CHECKING:
    from kaigen.config.network import EgressBlock, Network, Peer
    from kaigen.kinds.job import Input
    from kaigen.kinds.monitoring import Traces

_HUB = "https://huggingface.co"
_UNKNOWN = "https:"
"""A server whose name only a Secret has: HTTPS, on any host."""

_NAMESPACE = "kubernetes.io/metadata.name"
DNS: Sequence[Mapping[str, Any]] = (
    {
        "namespaceSelector": {"matchLabels": {_NAMESPACE: "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    },
)
API_PORTS = (443, 6443)
"""Ports of the API server's Service, and of its endpoints, which most plugins compare."""

ANYWHERE: Sequence[dict[str, Any]] = (
    {"ipBlock": {"cidr": "0.0.0.0/0", "except": [*NEVER[4]]}},
    {"ipBlock": {"cidr": "::/0", "except": [*NEVER[6]]}},
)
"""Every address but link-local ones and those of a cloud's metadata."""

IDENTITY: Mapping[str, Sequence[tuple[Sequence[str], Sequence[int]]]] = {
    "s3": [(("169.254.169.254/32", "169.254.170.23/32"), (80,))],
    "gs": [(("169.254.169.254/32",), (80, 8080)), (("169.254.169.252/32",), (987, 988))],
}
"""Where pods get the credentials of a cloud's identity, by the scheme of buckets: addresses with their ports.

Metadata of nodes and EKS Pod Identity; and the metadata server of GKE, with Dataplane V2 and without it, where a policy
sees the address and port that it is redirected to (source: GKE, network policies with Workload Identity Federation).
"""


ENTRA = "https://login.microsoftonline.com"
"""Where pods exchange the token of their service account (source: Microsoft identity platform, endpoints)."""


class Server(Struct, frozen=True):
    """A server that pods connect to.

    Attributes:
        url: URL of it.
        origin: the spec's field that names it.
        identity: scheme of the buckets, if they log in with the identity that a cloud gives them; else empty.
    """

    url: str
    origin: FieldPath
    identity: str = ""


def source_servers(source: FileSource, origin: FieldPath, context: Context) -> Iterator[Server]:
    """Yield the servers that the files of a source are on.

    Args:
        source: the source.
        origin: the spec's field of it.
        context: has the mirror of the Hub.
    """
    hub, s3, oci = source.hugging_face, source.s3, source.oci
    if hub:
        yield Server(hub_server(hub.endpoint, context), (*origin, "huggingFace"))
    for number, file in enumerate(source.http.files if source.http else []):
        yield Server(file.url, (*origin, "http", "files", number, "url"))
    if s3:
        yield from bucket_servers(s3, (*origin, "s3"))
    if oci:
        scheme = "http" if oci.plain_http else "https"
        yield Server(f"{scheme}://{parse_image(oci.ref).registry}", (*origin, "oci", "ref"))


def hub_server(endpoint: str | None, context: Context) -> str:
    """Return the URL of the Hub: that of a spec, of kaigen.yaml, or the public one."""
    network = context.config.network
    return endpoint or (network and network.hub_endpoint) or _HUB


def bucket_servers(bucket: Bucket | FilledBucket | S3, origin: FieldPath) -> list[Server]:
    """Return the server of a bucket, and the one that gives tokens for an identity of Azure."""
    secret = bucket.credentials.secret if bucket.credentials else None
    at = (*origin, "endpoint") if bucket.endpoint else (*origin, "uri")
    identity = bucket.scheme if secret is None else ""
    login = [Server(ENTRA, at)] if identity == "az" else []
    return [Server(cloud_server(bucket), at, identity=identity), *login]


def identity_labels(servers: Iterable[Server]) -> dict[str, str]:
    """Return the labels of pods that log in to servers with the identity that a cloud gives them."""
    return dict(AZURE_IDENTITY) if any(server.identity == "az" for server in servers) else {}


def input_servers(files: Iterable[Input], origin: FieldPath) -> Iterator[Server]:
    """Yield the servers that the files of a run are on."""
    for number, file in enumerate(files):
        if file.url:
            yield Server(file.url, (*origin, number, "url"))
        elif file.secret:
            yield Server(_UNKNOWN, (*origin, number, "secret"))
        elif file.s3:
            yield from bucket_servers(file.s3, (*origin, number, "s3"))


def trace_servers(traces: Traces | None) -> tuple[Server, ...]:
    """Return the collector of traces."""
    return () if traces is None else (Server(traces.endpoint, ("spec", "monitoring", "traces", "endpoint")),)


def egress_policy(
    frame: Frame,
    component: str,
    servers: Sequence[Server],
    context: Context,
    *,
    proxy: str | None = None,
    api: bool = True,
    among_themselves: bool = False,
    what: str = "",
) -> list[Object]:
    """Return the policy that denies connections of pods, except to what they download from; none if it is not set.

    Args:
        frame: the app.
        component: value of the pods' component label.
        servers: the servers that they connect to.
        context: has the settings of the network.
        proxy: the spec's own proxy for them.
        api: whether they connect to the API server.
        among_themselves: whether they connect to each other.
        what: end of the policy's name, in an app that has another one.
    """
    egress = context.config.network.download_egress if context.config.network else None
    if context.config.network is None or egress is None:
        return []
    rules: list[Mapping[str, Any]] = [
        {"to": _rules(egress.dns) or DNS, "ports": [port(53, "UDP"), port(53)]},
        *([{"to": _rules(egress.api_server), "ports": [port(each) for each in API_PORTS]}] if api else []),
        *server_rules(servers, context.config.network, egress, proxy),
    ]
    pods: Tree = {"matchLabels": frame.selector(component)}
    suffix = f"-{what}" if what else ""
    given = settings.objects(
        f"{what}.egress" if what else "networkPolicy.egress",
        rules,
        "What the pods may connect to, as rules of a NetworkPolicy.",
    )
    allowed: Tree = Items(None, ({"to": [{"podSelector": pods}]},), given) if among_themselves else given
    return [
        Object(
            role=f"networkpolicy-egress{suffix}",
            when=network_switch(),
            body={
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": frame.metadata(f"-egress{suffix}", component),
                "spec": {"podSelector": pods, "policyTypes": ["Egress"], "egress": allowed},
            },
        )
    ]


def server_rules(
    servers: Sequence[Server], network: Network, egress: EgressBlock, proxy: str | None
) -> list[dict[str, Any]]:
    """Return the rules for servers and proxies, one for each address."""
    proxies = {"http": proxy or network.http_proxy, "https": proxy or network.https_proxy}
    direct = [
        server.url
        for server in servers
        if not proxies[urlsplit(server.url).scheme] or _needs_no_proxy(server.url, network)
    ]
    urls = [*(url for url in proxies.values() if url), *direct]
    rules: list[dict[str, Any]] = []
    if egress.to is not None:
        ports = sorted({*(_port_of(url) for url in urls), *egress.ports})
        if ports:
            rules.append({"to": _rules(egress.to), "ports": [port(each) for each in ports]})
    else:
        rules += connection_rules(urls)
        if egress.ports:
            rules.append({"to": [*ANYWHERE], "ports": [port(each) for each in egress.ports]})
    for scheme in sorted({server.identity for server in servers} & IDENTITY.keys()):
        rules += [
            {"to": [{"ipBlock": {"cidr": each}} for each in addresses], "ports": [port(each) for each in ports]}
            for addresses, ports in IDENTITY[scheme]
        ]
    return rules


def _rules(peers: Iterable[Peer]) -> list[dict[str, Json]]:
    return [peer.rule() for peer in peers]


def _needs_no_proxy(url: str, network: Network) -> bool:
    """Return whether pods connect to a server without the proxy."""
    host = host_of(url)
    address = address_of(host)
    for each in ("localhost", ".svc", ".cluster.local", *(network.no_proxy or ())):
        if address is not None and _is_range(each) and address in ip_network(each, strict=False):
            return True
        if f".{host}".endswith(f".{each.lstrip('*').lstrip('.').lower()}"):
            return True
    return False


def _is_range(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def connection_rules(urls: Iterable[str]) -> list[dict[str, Any]]:
    """Return rules of a NetworkPolicy for connections to servers.

    A policy has no host names: an address is allowed with its port, and a Service by its namespace, since the port that
    a policy compares is that of the pod. Every other host is allowed by its port, at every address but link-local ones
    and those of a cloud's metadata.
    """
    rules: list[dict[str, Any]] = []
    for url in dict.fromkeys(urls):
        host = host_of(url)
        rule = {"to": _peers(host), "ports": [port(_port_of(url))]}
        if namespace_of(host):
            del rule["ports"]
        if rule not in rules:
            rules.append(rule)
    return rules


def _peers(host: str) -> list[dict[str, Any]]:
    """Return where a host may be."""
    address, namespace = address_of(host), namespace_of(host)
    if address is not None:
        return [{"ipBlock": {"cidr": f"{address}/{address.max_prefixlen}"}}]
    if namespace:
        return [{"namespaceSelector": {"matchLabels": {_NAMESPACE: namespace}}}]
    here: list[dict[str, Any]] = [{"podSelector": {}}] if "." not in host and not is_reserved(host) else []
    return [*ANYWHERE, *here]


def check_egress(servers: Sequence[Server], context: Context, problems: Problems) -> None:
    """Warn of servers that the platform's setting does not let pods reach."""
    egress = context.config.network.download_egress if context.config.network else None
    if egress is None or egress.to is None:
        return
    peers = _rules(egress.to)
    for server in servers:
        host = host_of(server.url)
        if not _is_in(host, peers):
            problems.warning(
                "KG0399",
                f"`network.downloadEgress.to` of kaigen.yaml does not have `{host}`, so the download cannot reach it",
                server.origin,
                "use a server that it has, or let the platform team add this one",
            )


def _is_in(host: str, peers: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether peers have a host, as far as its name says; the addresses of other names are not known."""
    address, namespace = address_of(host), namespace_of(host)
    if address is not None:
        return any(_has(peer["ipBlock"], address) for peer in peers if "ipBlock" in peer)
    if not namespace:
        return any("ipBlock" in peer for peer in peers)
    labels = [peer["namespaceSelector"].get("matchLabels", {}) for peer in peers if "namespaceSelector" in peer]
    return any(each.get(_NAMESPACE, namespace) == namespace for each in labels)


def _has(block: Mapping[str, Any], address: Address) -> bool:
    inner = any(address in ip_network(each, strict=False) for each in block.get("except", ()))
    return not inner and address in ip_network(block["cidr"], strict=False)


def _port_of(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def port(number: int, protocol: str = "TCP") -> dict[str, Any]:
    """Return a port of a NetworkPolicy."""
    return {"port": number, "protocol": protocol}
