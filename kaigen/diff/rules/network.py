"""Rules for Services, routes and network policies."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diff.formatting import clip, listing, value
from kaigen.diff.model import ABSENT, Absent, Json
from kaigen.diff.objects import JsonMap, Obj, get, get_list, get_map, get_text
from kaigen.diff.pods import pod_templates
from kaigen.diff.rules.case import Case, Finding
from kaigen.tenancy.table import annotated_hosts

ROUTES = frozenset(
    {
        "Ingress.networking.k8s.io",
        "HTTPRoute.gateway.networking.k8s.io",
        "GRPCRoute.gateway.networking.k8s.io",
        "Gateway.gateway.networking.k8s.io",
    }
)
_OUTSIDE = ("LoadBalancer", "NodePort")


def service_type(case: Case) -> Iterator[Finding]:
    """The type of a Service changed."""
    was = (get_text(case.old.data, "spec", "type") or "ClusterIP") if case.old else "ClusterIP"
    now = get_text(case.obj.data, "spec", "type") or "ClusterIP"
    if was == now:
        return
    if now in _OUTSIDE and was not in _OUTSIDE:
        meaning = "reachable from outside the cluster"
    elif was in _OUTSIDE and now not in _OUTSIDE:
        meaning = "no longer reachable from outside the cluster"
    else:
        meaning = "reachable in another way"
    yield "notice", f"Service is of type {now}{f' instead of {was}' if case.old else ''}: {meaning}"


def service_ports(case: Case) -> Iterator[Finding]:
    """The ports of a Service changed."""
    old, new = case.pair
    before, after = _ports(old), _ports(new)
    gone = [port for port in before if port not in after]
    come = [port for port in after if port not in before]
    if gone:
        but = f", but on {listing(come)}" if come else ""
        yield (
            "notice",
            f"Service no longer listens on port {listing(gone)}{but}: update the clients",
        )
    elif come:
        yield "info", f"Service also listens on port {listing(come)}"
    for port in after:
        if port in before and before[port] != after[port]:
            yield "notice", f"port {port} forwards to container port {after[port]} instead of {before[port]}"


def _ports(service: Obj) -> dict[str, str]:
    found = {}
    for port in get_list(service.data, "spec", "ports"):
        protocol = get_text(port, "protocol") or "TCP"
        number = get_text(port, "port")
        found[number if protocol == "TCP" else f"{number}/{protocol}"] = (
            get_text(port, "targetPort") or number
        )
    return found


def service_selector(case: Case) -> Iterator[Finding]:
    """The selector of a Service changed."""
    old, new = case.pair
    was, now = get_map(old.data, "spec", "selector"), get_map(new.data, "spec", "selector")
    if was != now:
        yield "notice", f"Service selects other pods: {_labels(now)} instead of {_labels(was)}"


def _labels(labels: JsonMap) -> str:
    return listing((f"{key}={value(item)}" for key, item in labels.items()), 3) or "none"


def route_hosts(case: Case) -> Iterator[Finding]:
    """The host names of a route changed, or those that annotations name."""
    before, after = _hosts(case.old), _hosts(case.new)
    come = [host for host in after if host not in before]
    gone = [host for host in before if host not in after]
    if come:
        yield "notice", f"reachable at {listing(come)}"
    if gone:
        yield "notice", f"no longer reachable at {listing(gone)}"


def _hosts(obj: Obj | None) -> list[str]:
    if obj is None:
        return []
    spec = get_map(obj.data, "spec")
    names = [str(host) for host in get_list(spec, "hostnames")]
    names += [get_text(rule, "host") for rule in get_list(spec, "rules")]
    names += [get_text(listener, "hostname") for listener in get_list(spec, "listeners")]
    names += annotated_hosts(obj.annotations)
    return list(dict.fromkeys(name for name in names if name))


def route_backends(case: Case) -> Iterator[Finding]:
    """The backends of a route changed."""
    old, new = case.pair
    before, after = _backends(get(old.data, "spec")), _backends(get(new.data, "spec"))
    if before != after:
        yield (
            "notice",
            f"traffic goes to {listing(after) or 'nothing'} instead of {listing(before) or 'nothing'}",
        )


def _backends(item: Json | Absent) -> list[str]:
    found: list[str] = []
    if isinstance(item, list):
        for child in item:
            found += _backends(child)
    elif isinstance(item, dict):
        for ref in get_list(item, "backendRefs"):
            weight = get_text(ref, "weight")
            found.append(get_text(ref, "name") + (f" (weight {weight})" if weight else ""))
        if isinstance(service := get(item, "backend", "service"), dict):
            found.append(get_text(service, "name"))
        for key in ("rules", "http", "paths", "defaultBackend"):
            if isinstance(child := item.get(key), (dict, list)):
                found += _backends({"backend": child} if key == "defaultBackend" else child)
    return list(dict.fromkeys(found))


def policy_removed(case: Case) -> Iterator[Finding]:
    """A NetworkPolicy was removed."""
    if not any(pod_templates(sibling) for sibling in case.siblings()):
        yield "info", "is deleted together with its pods"
        return
    directions = listing(direction for direction in ("ingress", "egress") if _governs(case.obj, direction))
    yield (
        "danger",
        f"no longer restricts {directions or 'traffic'} of {_selected(case.obj)}: traffic that no other "
        "policy restricts is allowed",
    )


def policy_changed(case: Case) -> Iterator[Finding]:
    """A NetworkPolicy allows more or less."""
    old, new = case.pair
    if get(old.data, "spec", "podSelector") != get(new.data, "spec", "podSelector"):
        yield "danger", f"network policy no longer applies to {_selected(old)}, but to {_selected(new)}"
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        before, after = _governs(old, direction), _governs(new, direction)
        if before and not after:
            yield "danger", f"{direction} is no longer restricted"
        elif after and not before:
            yield "notice", f"{direction} is now restricted"
        elif after:
            was, now = get_list(old.data, "spec", direction), get_list(new.data, "spec", direction)
            more = [rule for rule in now if not any(_allows(wide, rule, peers) for wide in was)]
            less = [rule for rule in was if not any(_allows(wide, rule, peers) for wide in now)]
            if more:
                yield "danger", f"allows more: {direction} {_describe(more, peers)}"
            if less:
                yield "notice", f"allows less: no {direction} {_describe(less, peers)}"


def policy_replaced(case: Case) -> Iterator[Finding]:
    """A NetworkPolicy has another name and the same rules, as that of a changed run has."""
    old, new = case.pair
    if get(old.data, "spec") == get(new.data, "spec"):
        yield "info", f"{new} replaces {old} with the same rules"


def policy_added(case: Case) -> Iterator[Finding]:
    """A NetworkPolicy was added."""
    directions = [direction for direction in ("ingress", "egress") if _governs(case.obj, direction)]
    yield "notice", f"restricts {listing(directions)} of {_selected(case.obj)}"


def _governs(policy: Obj, direction: str) -> bool:
    """Return whether the policy restricts a direction; without `policyTypes`, egress only if it has rules."""
    types = get(policy.data, "spec", "policyTypes")
    if isinstance(types, list) and types:
        return direction.capitalize() in types
    return direction == "ingress" or bool(get_list(policy.data, "spec", "egress"))


def _selected(policy: Obj) -> str:
    labels = get_map(policy.data, "spec", "podSelector", "matchLabels")
    if labels:
        return f"pods with {_labels(labels)}"
    return "its pods" if get_map(policy.data, "spec", "podSelector") else "all pods of the namespace"


def _allows(wide: Json, narrow: Json, peers: str) -> bool:
    """Return whether the wide rule allows everything that the narrow rule allows."""
    for field in (peers, "ports"):
        allowed, requested = get_list(wide, field), get_list(narrow, field)
        if allowed and (not requested or any(item not in allowed for item in requested)):
            return False
    return True


def _describe(rules: list[Json], peers: str) -> str:
    parts = []
    for rule in rules:
        who = listing((_peer(item) for item in get_list(rule, peers)), 2) or "anywhere"
        ports = listing((_port(item) for item in get_list(rule, "ports")), 3) or "every port"
        parts.append(f"{peers} {who} on {ports}")
    return listing(parts, 2)


def _peer(peer: Json) -> str:
    block = get_map(peer, "ipBlock")
    if block:
        excluded = listing((str(item) for item in get_list(block, "except")), 2)
        return get_text(block, "cidr") + (f" without {excluded}" if excluded else "")
    parts = []
    for field, noun in (("namespaceSelector", "namespaces"), ("podSelector", "pods")):
        selector = get(peer, field)
        if selector is not ABSENT:
            labels = get_map(selector, "matchLabels")
            parts.append(
                f"{noun} with {_labels(labels)}"
                if labels
                else f"all {noun}"
                if not selector
                else f"some {noun}"
            )
    return clip(" and ".join(parts), 80) or "anywhere"


def _port(port: Json) -> str:
    end, protocol = get_text(port, "endPort"), get_text(port, "protocol")
    number = get_text(port, "port") or "any"
    return f"port {number}{f'-{end}' if end else ''}{f'/{protocol}' if protocol not in ('', 'TCP') else ''}"
