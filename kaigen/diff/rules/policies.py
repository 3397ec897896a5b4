"""Rules for network policies: what they restrict, and what they allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import reduce
from ipaddress import IPv4Network, IPv6Network, ip_network
from operator import and_

from kaigen.core.json_types import Json, JsonObject
from kaigen.diff.formatting import clip, listing, value
from kaigen.diff.model import ABSENT
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.rules.protections import has_pods_of, is_namespace_left
from kaigen.diff.selectors import SelectorIndex
from kaigen.diff.trees import is_own, locate

_POLICY = "NetworkPolicy"
_DIRECTIONS = (("ingress", "from"), ("egress", "to"))


def policy_removed(case: Case) -> Iterator[Finding]:
    """A NetworkPolicy was removed."""
    if not _has_pods(case):
        yield "info", "is deleted together with its pods"
        return
    directions = listing(direction for direction in ("ingress", "egress") if _governs(case.obj, direction))
    yield (
        "danger",
        f"no longer restricts {directions or 'traffic'} of {_selected(case.obj)}: traffic that no other "
        "policy restricts is allowed",
    )


def _has_pods(case: Case) -> bool:
    """Return whether pods that a policy selected may be left: those of the tree, or any of the namespace."""
    if get_map(case.obj.data, "spec", "podSelector"):
        return has_pods_of(case.obj, case)
    return is_namespace_left(case)


def policy_changed(case: Case) -> Iterator[Finding]:
    """A NetworkPolicy allows more or less."""
    old, new = case.pair
    if get(old.data, "spec", "podSelector") != get(new.data, "spec", "podSelector"):
        yield "danger", f"network policy no longer applies to {_selected(old)}, but to {_selected(new)}"
    for direction, peers in _DIRECTIONS:
        before, after = _governs(old, direction), _governs(new, direction)
        if before and not after:
            yield "danger", f"{direction} is no longer restricted"
        elif after and not before:
            yield "notice", f"{direction} is now restricted"
        elif after:
            was, now = get_list(old.data, "spec", direction), get_list(new.data, "spec", direction)
            old_rules, new_rules = _AllowIndex(was, peers), _AllowIndex(now, peers)
            more = [rule for rule in now if not old_rules.allows(rule)]
            less = [rule for rule in was if not new_rules.allows(rule)]
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
    directions = [direction for direction, _ in _DIRECTIONS if _governs(case.obj, direction)]
    allowed = [
        f"{direction} {_describe(rules, peers)}"
        for direction, peers in _DIRECTIONS
        if (rules := get_list(case.obj.data, "spec", direction)) and direction in directions
    ]
    text = f"restricts {listing(directions)} of {_selected(case.obj)}"
    yield "notice", f"{text} and allows {'; '.join(allowed)}" if allowed else text


def policy_opens(case: Case) -> Iterator[Finding]:
    """A new NetworkPolicy allows what others deny, or a policy allows addresses of the node or the cloud."""
    if is_own(case.obj):
        return
    for direction, peers in _DIRECTIONS:
        rules = get_list(case.obj.data, "spec", direction) if _governs(case.obj, direction) else []
        local = sorted({text for rule in rules for text in _cidrs(rule, peers) if is_local(text)})
        local = [text for text in local if text not in _had(case, direction, peers)] if local else []
        if local:
            yield ("danger", f"allows {direction} {peers} {listing(local)}: addresses of the node or of the cloud")
        if case.status == "added":
            # One that is open may also open what a policy outside of the tree denies.
            is_restricted = _reaches_others(case, direction) and _is_restricted(case, direction)
            more = [rule for rule in rules if _is_open(rule, peers) or is_restricted]
            if more:
                what = _describe(more, peers)
                yield ("danger", f"allows {direction} of {_selected(case.obj)} that other policies may deny: {what}")


_LOCAL = ("127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/32", "::1/128", "fe80::/10", "fd00:ec2::/32")
"""Loopback, link-local, and the metadata of Amazon EC2 over IPv6 (sources: RFC 6890; EC2 user guide, IMDS)."""


def is_local(text: str) -> bool:
    """Return whether all addresses of a range are of the node itself or of the link, as that of a cloud's metadata."""
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        return False
    if isinstance(found, IPv6Network):
        mapped = found.network_address.ipv4_mapped
        if mapped is not None and found.prefixlen >= 96:
            return is_local(f"{mapped}/{found.prefixlen - 96}")
    return any(_contains(each, found) for each in map(ip_network, _LOCAL))


def _contains(whole: IPv4Network | IPv6Network, part: IPv4Network | IPv6Network) -> bool:
    return whole.version == part.version and whole.prefixlen <= part.prefixlen and part.network_address in whole


def _cidrs(rule: Json, peers: str) -> list[str]:
    return [text for peer in get_list(rule, peers) if (text := get_text(peer, "ipBlock", "cidr"))]


def _had(case: Case, direction: str, peers: str) -> set[str]:
    """Return the ranges that policies of the namespace allowed before."""
    return case.trees.once(
        ("ranges", case.top, case.place, direction),
        lambda: {
            text
            for obj in case.trees.in_namespace("old", _POLICY, case.top, case.place)
            for rule in get_list(obj.data, "spec", direction)
            for text in _cidrs(rule, peers)
        },
    )


def _is_open(rule: Json, peers: str) -> bool:
    """Return whether a rule limits neither ports nor peers."""
    if get_list(rule, "ports"):
        return False
    named = get_list(rule, peers)
    wide = [text for text in _cidrs(rule, peers) if text.endswith("/0")]
    every = [each for each in named if get(each, "namespaceSelector") == {} and not get_map(each, "podSelector")]
    return not named or bool(wide or every)


def _reaches_others(case: Case, direction: str) -> bool:
    """Return whether a policy selects all pods of the namespace, or those of a policy of another app."""
    if not get_map(case.obj.data, "spec", "podSelector", "matchLabels"):
        return True
    key = ("policies of apps", case.top, case.place, direction)
    index = case.trees.once(
        key,
        lambda: SelectorIndex(
            (locate(obj.path).app, selector) for obj, selector in _selectors(case, direction) if selector
        ),
    )
    return index.has_sharing(get_map(case.obj.data, "spec", "podSelector"), locate(case.obj.path).app)


def _is_restricted(case: Case, direction: str) -> bool:
    """Return whether another policy of the new tree restricts pods which a policy selects."""
    key = ("policies", case.top, case.place, direction)
    index = case.trees.once(
        key, lambda: SelectorIndex(((obj.path, obj.name), selector) for obj, selector in _selectors(case, direction))
    )
    return index.has_sharing(get_map(case.obj.data, "spec", "podSelector"), (case.obj.path, case.obj.name))


def _selectors(case: Case, direction: str) -> Iterator[tuple[Obj, JsonObject]]:
    """Yield the policies of the namespace in the new tree that restrict a direction, with their selectors."""
    for obj in case.trees.in_namespace("new", _POLICY, case.top, case.place):
        if _governs(obj, direction):
            yield obj, get_map(obj.data, "spec", "podSelector")


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


class _AllowIndex:
    """Rules of a policy. Each is a bit of an integer, so that a look-up takes one operation for each peer and port.

    Args:
        rules: the rules of one direction.
        peers: the field with their peers.
    """

    def __init__(self, rules: list[Json], peers: str) -> None:
        self._fields = (peers, "ports")
        self._open = dict.fromkeys(self._fields, 0)
        self._with: dict[tuple[str, str], int] = {}
        for number, rule in enumerate(rules):
            for field in self._fields:
                items = {_key(item) for item in get_list(rule, field)}
                if not items:
                    self._open[field] |= 1 << number
                for item in items:
                    self._with[field, item] = self._with.get((field, item), 0) | 1 << number

    def allows(self, rule: Json) -> bool:
        """Return whether one of the rules allows everything that this rule allows."""
        found = -1
        for field in self._fields:
            items = [self._with.get((field, _key(item)), 0) for item in get_list(rule, field)]
            found &= self._open[field] | (reduce(and_, items) if items else 0)
        return found != 0


def _key(item: Json) -> str:
    return json.dumps(item, sort_keys=True)


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
                f"{noun} with {_labels(labels)}" if labels else f"all {noun}" if not selector else f"some {noun}"
            )
    return clip(" and ".join(parts), 80) or "anywhere"


def _port(port: Json) -> str:
    end, protocol = get_text(port, "endPort"), get_text(port, "protocol")
    number = get_text(port, "port") or "any"
    return f"port {number}{f'-{end}' if end else ''}{f'/{protocol}' if protocol not in ('', 'TCP') else ''}"


def _labels(labels: JsonObject) -> str:
    return listing((f"{key}={value(item)}" for key, item in labels.items()), 3) or "none"
