"""What pods connect to in a namespace that denies egress: policies for what kaigen knows, and warnings of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.compile.app import Object
from kaigen.compile.builders.egress import API_PORTS, Server, connection_rules, port, server_rules
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.network import network_switch
from kaigen.compile.context import Context
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.field_expressions import Labels
from kaigen.compile.network_access import calls_api
from kaigen.compile.pod_edits import default_items
from kaigen.compile.problems import Problems
from kaigen.config.globs import is_granted
from kaigen.config.tenant_settings import tenant_of_namespace
from kaigen.core.text import series
from kaigen.kubernetes.server_hosts import host_of, namespace_of

if TYPE_CHECKING:
    from kaigen.config.network import Network

BLOCKED = "KG0337"
"""The code of connections that a namespace denies, and that kaigen cannot allow."""

COMPONENT = "app.kubernetes.io/component"


class Connections(Struct, frozen=True):
    """What the pods of an app connect to, besides each other and the API server.

    Attributes:
        pods: labels of pods of other apps in the same namespace.
        servers: by their URLs.
    """

    pods: tuple[Mapping[str, str], ...] = ()
    servers: tuple[Server, ...] = ()


def denies_egress(context: Context) -> bool:
    """Return whether a policy denies the connections of all pods of the namespaces of apps."""
    gitops = context.config.gitops
    return gitops is not None and gitops.tenancy is not None and "Egress" in gitops.tenancy.default_deny


def connection_policies(
    frame: Frame, namespace: str, context: Context, objects: Sequence[Object], given: Connections, problems: Problems
) -> list[Object]:
    """Return the policies for what the pods of an app connect to; none where nothing denies it.

    Args:
        frame: the app.
        namespace: of the app.
        context: has the settings of the network.
        objects: of the app.
        given: what its pods connect to.
        problems: receives the connections that kaigen cannot allow.
    """
    if not denies_egress(context):
        return []
    own: list[Tree] = [{"podSelector": {"matchLabels": frame.selector()}}] if _talk(objects) else []
    others: list[Tree] = [{"podSelector": {"matchLabels": labels}} for labels in given.pods]
    rules: list[Tree] = [{"to": [peer]} for peer in (*own, *others)]
    rules += _cluster_rules(namespace, context, given.servers, problems)
    outside = [server for server in given.servers if not namespace_of(host_of(server.url))]
    calling = _calling(objects)
    network = context.config.network
    egress = network.download_egress if network is not None else None
    if network is None or egress is None:
        _report_unknown(namespace, [each for each in outside if not _has_proxy(each, network)], calling, problems)
    else:
        rules += server_rules(outside, network, egress, None)
    policies = [_policy(frame, "connections", {"matchLabels": frame.selector()}, rules)] if rules else []
    if calling and egress is not None:
        pods: Tree = {
            "matchLabels": frame.selector(),
            "matchExpressions": [{"key": COMPONENT, "operator": "In", "values": calling}],
        }
        to = [peer.rule() for peer in egress.api_server]
        policies.append(_policy(frame, "api-server", pods, [{"to": to, "ports": [port(each) for each in API_PORTS]}]))
    return policies


def _report_unknown(namespace: str, outside: Sequence[Server], calling: Sequence[str], problems: Problems) -> None:
    """Warn of what pods need, and kaigen.yaml has no addresses of."""
    needed = ["the API server"] if calling else []
    needed += dict.fromkeys(f"`{host_of(server.url)}`" for server in outside)
    if not needed:
        return
    short = [host for host in (host_of(each.url) for each in outside if _is_plain(each)) if host.count(".") == 1]
    service = f"; if `{short[0]}` is a Service, write `{short[0]}.svc`" if short else ""
    problems.warning(
        BLOCKED,
        f"namespace `{namespace}` denies egress, so the pods cannot reach {series(needed)}",
        outside[0].origin if outside else ("metadata", "name"),
        f"set `network.downloadEgress` in kaigen.yaml, or write a NetworkPolicy for the pods yourself{service}",
    )


def _is_plain(server: Server) -> bool:
    return server.url.startswith("http:")


def _has_proxy(server: Server, network: Network | None) -> bool:
    """Return whether a proxy, which a policy of the namespace allows, is between pods and a server."""
    return network is not None and bool(network.http_proxy if _is_plain(server) else network.https_proxy)


def _talk(objects: Iterable[Object]) -> bool:
    """Return whether the pods of an app connect to each other: whether a policy of the app admits its own pods."""
    rules = [rule for item in objects if item.kind == "NetworkPolicy" for rule in _ingress(item)]
    return any(
        isinstance(peer, Mapping) and isinstance(peer.get("podSelector", {}).get("matchLabels"), Labels)
        for rule in rules
        if isinstance(rule.get("from"), list)
        for peer in rule["from"]
    )


def _ingress(policy: Object) -> list[Any]:
    spec: Any = policy.body["spec"]
    return list(spec.get("ingress", ()))


def _cluster_rules(
    namespace: str, context: Context, servers: Sequence[Server], problems: Problems
) -> Iterator[dict[str, Any]]:
    """Yield the rules for Services, and report those in namespaces that the tenant may not connect to."""
    for server in servers:
        host = host_of(server.url)
        place = namespace_of(host)
        if place and _may_reach(place, namespace, context):
            yield from connection_rules([server.url])
        elif place:
            problems.warning(
                BLOCKED,
                f"namespace `{namespace}` denies egress, and its tenant may not open it for `{host}`",
                server.origin,
                f"add `{place}` to `networks` of the tenant in kaigen.yaml",
            )


def _may_reach(place: str, namespace: str, context: Context) -> bool:
    """Return whether pods of a namespace may connect to another one."""
    tenant = tenant_of_namespace(namespace, context.config.tenants)
    return tenant is None or place in tenant.namespaces or is_granted(place, tenant.granted("networks"))


def _calling(objects: Sequence[Object]) -> list[str]:
    """Return the components of pods with a token of the API server, which no other policy lets them reach."""
    allowed = {_component(item) for item in objects if item.role.startswith("networkpolicy-egress")}
    return sorted({name for item in objects if not item.test for name in _callers(item.body)} - allowed)


def _component(policy: Object) -> str:
    """Return the component of the pods that a policy selects."""
    selector: Any = policy.body["spec"]
    labels = selector["podSelector"].get("matchLabels")
    return str(labels.own.get(COMPONENT, "")) if isinstance(labels, Labels) else ""


def _callers(tree: Any) -> Iterator[str]:
    """Yield the components of the pods in a tree whose containers have a token."""
    if isinstance(tree, Setting):
        tree = tree.default
    if isinstance(tree, list | tuple):
        for node in tree:
            yield from _callers(node)
    if not isinstance(tree, Mapping):
        return
    pod, metadata = tree.get("spec"), tree.get("metadata")
    if isinstance(pod, Mapping) and isinstance(metadata, Mapping) and "containers" in pod:
        labels = metadata.get("labels")
        lists = [each for field in ("initContainers", "containers") for each in default_items(pod.get(field))]
        if isinstance(labels, Labels) and any(isinstance(each, Mapping) and calls_api(each, pod) for each in lists):
            yield str(labels.own.get(COMPONENT, ""))
        return
    for node in tree.values():
        yield from _callers(node)


def _policy(frame: Frame, what: str, pods: Tree, rules: Sequence[Tree]) -> Object:
    return Object(
        role=f"networkpolicy-{what}",
        when=network_switch(),
        body={
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": frame.metadata(f"-{what}", "network"),
            "spec": {"podSelector": pods, "policyTypes": ["Egress"], "egress": [*rules]},
        },
    )
