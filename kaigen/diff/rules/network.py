"""Rules for Services, routes and network policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast

from kaigen.core.json_types import Json, JsonObject
from kaigen.diff.formatting import listing, value
from kaigen.diff.model import Absent
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.trees import Side, place_of
from kaigen.kubernetes.manifest import Object, entries, text
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.workloads import SERVING_TYPES
from kaigen.tenancy.hosts import annotated_hosts

ROUTES = frozenset(
    {
        "Ingress.networking.k8s.io",
        "HTTPRoute.gateway.networking.k8s.io",
        "GRPCRoute.gateway.networking.k8s.io",
        "Gateway.gateway.networking.k8s.io",
    }
)
_SIDES: tuple[Side, ...] = ("new", "old")
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
        yield ("notice", f"Service no longer listens on port {listing(gone)}{but}: update the clients")
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
        found[number if protocol == "TCP" else f"{number}/{protocol}"] = get_text(port, "targetPort") or number
    return found


def service_selector(case: Case) -> Iterator[Finding]:
    """The selector of a Service changed."""
    old, new = case.pair
    was, now = get_map(old.data, "spec", "selector"), get_map(new.data, "spec", "selector")
    if was != now:
        yield "notice", f"Service selects other pods: {_labels(now)} instead of {_labels(was)}"


def _labels(labels: JsonObject) -> str:
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
    was, now = _shares(old), _shares(new)
    if was and now and len(was | now) > 1:
        for key in was | now:
            if was.get(key, 0) != now.get(key, 0):
                target, port = key
                several = any(other[0] == target and other != key for other in was | now)
                name = f"port {port} of {target}" if several else target
                share = f"{now.get(key, 0):g} % of the requests go to {name}{_image(case, target)}"
                yield "notice", f"{share}, before {was.get(key, 0):g} %"
        return
    before, after = _backends(get(old.data, "spec")), _backends(get(new.data, "spec"))
    if before != after:
        yield ("notice", f"traffic goes to {listing(after) or 'nothing'} instead of {listing(before) or 'nothing'}")


def _shares(route: Obj) -> dict[tuple[str, str], float]:
    """Return the percentage of requests by backend and port, for a route with one rule whose backends have weights."""
    rules = get_list(route.data, "spec", "rules")
    refs = get_list(rules[0], "backendRefs") if len(rules) == 1 else []
    weights: Counter[tuple[str, str]] = Counter()
    for ref in refs:
        weight = get(ref, "weight")
        if not isinstance(weight, int):
            return {}
        weights[_target(ref), get_text(ref, "port")] += weight
    total = sum(weights.values())
    return {key: round(100 * weight / total, 1) for key, weight in weights.items()} if total else {}


def _target(ref: Json) -> str:
    """Return the name of a backend, with its kind unless that is Service, and with its namespace if it has one."""
    kind, namespace, name = (get_text(ref, field) for field in ("kind", "namespace", "name"))
    place = f"{namespace}/{name}" if namespace else name
    return place if kind in ("", "Service") else f"{kind} {place}"


def _image(case: Case, name: str) -> str:
    """Return the image of the pods behind a Service of kaigen's, in parentheses; empty where it is not known."""
    for kind in sorted(each.partition(".")[0] for each in SERVING_TYPES):
        for side in _SIDES:
            for workload in case.trees.named(side, kind, case.top, name):
                pods = pod_templates(cast(Object, workload.data))
                containers = entries(pods[0].spec.get("containers")) if pods else []
                if workload.name == name and place_of(workload) == case.place and containers:
                    return f" ({text(containers[0][1].get('image'))})"
    return ""


def _backends(item: Json | Absent) -> list[str]:
    found: list[str] = []
    if isinstance(item, list):
        for child in item:
            found += _backends(child)
    elif isinstance(item, dict):
        for ref in get_list(item, "backendRefs"):
            weight = get_text(ref, "weight")
            found.append(_target(ref) + (f" (weight {weight})" if weight else ""))
        if isinstance(service := get(item, "backend", "service"), dict):
            found.append(get_text(service, "name"))
        for key in ("rules", "http", "paths", "defaultBackend"):
            if isinstance(child := item.get(key), (dict, list)):
                found += _backends({"backend": child} if key == "defaultBackend" else child)
    return list(dict.fromkeys(found))
