"""What NetworkPolicies open, and the condition that it is only what the tenant may reach.

NetworkPolicies add up, so a single one can open what the policies of the namespace deny. Only the directions that
`gitops.tenancy.defaultDeny` denies are limited.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv6Address, ip_network
from typing import Any, NamedTuple

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import Object, entries, mapping, text
from kaigen.kubernetes.server_hosts import NO_PEERS
from kaigen.system.lazy_import import lazy_imports
from kaigen.tenancy import cel
from kaigen.tenancy.reach import Reach, Refusal

with lazy_imports():
    from kaigen.compile import network_access
    from kaigen.compile.builders import egress


_NAMESPACE = "kubernetes.io/metadata.name"
_DIRECTIONS = (("Ingress", "ingress", "from"), ("Egress", "egress", "to"))


class _Opened(NamedTuple):
    """What a tenant's policies may open in one direction.

    Attributes:
        namespaces: globs.
        ranges: of addresses.
        peers: of kaigen.yaml, which every app may have.
        everything: any peer.
        any_host: any address outside the cluster by its port, as downloads from hosts need it.
        any_client: any peer, on ports of pods that labels select, as Services need it.
        known: peers with the only port that may be opened to each.
    """

    namespaces: tuple[str, ...]
    ranges: tuple[str, ...]
    peers: tuple[Mapping[str, Any], ...] = ()
    everything: bool = False
    any_host: bool = False
    any_client: bool = False
    known: tuple[tuple[Mapping[str, Any], int], ...] = ()


class OpenedNetwork(Struct, frozen=True):
    """The `spec` of a NetworkPolicy that opens only the tenant's own namespaces, and what is granted."""

    grant: str = "networks"

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each rule without peers, and each peer, that is too wide."""
        spec = mapping(value)
        selects = bool(mapping(mapping(spec.get("podSelector")).get("matchLabels")))
        for name, field, peers in _DIRECTIONS:
            if name not in tenant.denied:
                continue
            opened = _opened(name, tenant)
            for number, rule in entries(spec.get(field)):
                ports = _ports(rule)
                if opened.everything or (opened.any_client and selects and ports):
                    continue
                path: FieldPath = (field, number)
                listed = entries(rule.get(peers))
                if not listed and not (opened.any_host and ports):
                    yield Refusal(f"{peers} everywhere", path)
                for place, peer in listed:
                    if not _is_opened(peer, ports, opened):
                        yield Refusal(f"{peers} {_shown(peer)}", (*path, peers, place))

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare each rule and each peer."""
        tests = []
        for name, field, peers in _DIRECTIONS:
            opened = _opened(name, tenant)
            if name not in tenant.denied or opened.everything:
                continue
            listed = f"r.?{peers}.orValue([])"
            nothing = _PORTS if opened.any_host else "false"
            rule = f"({listed}.size() == 0 ? {nothing} : {listed}.all(p, {_peer_test(opened)}))"
            if opened.any_client:
                labels = f"{cel.at(value, ('podSelector', 'matchLabels'))}.orValue({{}})"
                rule = f"(({labels}.size() > 0 && {_PORTS}) || {rule})"
            tests.append(f"{cel.at(value, (field,))}.orValue([]).all(r, {rule})")
        return f"({' && '.join(tests)})" if tests else "true"


def _opened(direction: str, tenant: Tenant) -> _Opened:
    granted = tenant.granted("networks")
    ranges = tuple(entry for entry in granted if "/" in entry)
    namespaces = (*tenant.namespaces, *(entry for entry in granted if "/" not in entry))
    everything = "*" in granted
    if direction == "Ingress":
        return _Opened(namespaces, ranges, everything=everything, any_client=True)
    network = tenant.network
    known: list[tuple[Mapping[str, Any], int]] = [(peer, 53) for peer in egress.DNS]
    if network is None:
        return _Opened(namespaces, ranges, everything=everything, known=tuple(known))
    peers = [peer for rule in network_access.egress_rules(network) for peer in rule.get("to", ())]
    block = network.download_egress
    if block is not None:
        peers += [peer.rule() for peer in (*block.api_server, *block.dns, *(block.to or ()))]
        rules = [rule for rules in egress.IDENTITY.values() for rule in rules]
        places = dict.fromkeys((cidr, port) for cidrs, ports in rules for cidr in cidrs for port in ports)
        known += [({"ipBlock": {"cidr": cidr}}, port) for cidr, port in places]
    any_host = block is not None and block.to is None
    return _Opened(namespaces, ranges, tuple(peers), everything, any_host, known=tuple(known))


def _ports(rule: Object) -> list[object]:
    """Return the ports of a rule; none if it opens all of them, or a range."""
    listed = [port for _, port in entries(rule.get("ports"))]
    single = all(port.get("port") is not None and port.get("endPort") is None for port in listed)
    return [port["port"] for port in listed] if single else []


_PORTS = "(r.?ports.orValue([]).size() > 0 && r.ports.all(n, n.?port.hasValue() && !n.?endPort.hasValue()))"
"""The expression that a rule names each of its ports."""


def _is_opened(peer: Object, ports: Sequence[object], opened: _Opened) -> bool:
    if peer in opened.peers or any(
        peer == known and ports and all(each == port for each in ports) for known, port in opened.known
    ):
        return True
    if opened.any_host and ports and peer in egress.ANYWHERE:
        return True
    if "ipBlock" in peer:
        return _is_in_range(text(mapping(peer["ipBlock"]).get("cidr")), ports, opened)
    if "namespaceSelector" not in peer:
        return "podSelector" in peer
    return _is_in_namespaces(mapping(peer["namespaceSelector"]), opened.namespaces)


def _is_in_namespaces(selector: Object, namespaces: Sequence[str]) -> bool:
    if is_granted(text(mapping(selector.get("matchLabels")).get(_NAMESPACE)), namespaces):
        return True
    for _, each in entries(selector.get("matchExpressions")):
        values = each.get("values")
        if each.get("key") == _NAMESPACE and each.get("operator") == "In" and isinstance(values, list):
            return all(is_granted(str(value), namespaces) for value in values)
    return False


def _is_in_range(cidr: str, ports: Sequence[object], opened: _Opened) -> bool:
    try:
        inner = ip_network(cidr, strict=False)
    except ValueError:
        return False
    address = inner.network_address
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return False
    if any(address in outer and inner.prefixlen >= outer.prefixlen for outer in map(ip_network, opened.ranges)):
        return True
    ordinary = not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or any(address in ip_network(each) for each in NO_PEERS)
    )
    return bool(opened.any_host and ports and inner.num_addresses == 1 and ordinary)


def _shown(peer: Object) -> str:
    if "ipBlock" in peer:
        return f"`{mapping(peer['ipBlock']).get('cidr')}`"
    name = text(mapping(mapping(peer.get("namespaceSelector")).get("matchLabels")).get(_NAMESPACE))
    return f"namespace `{name}`" if name else "other namespaces"


def _peer_test(opened: _Opened) -> str:
    """Return the expression that a peer of a rule is opened."""
    pattern = glob_pattern(opened.namespaces)
    label = f"{cel.at('p', ('namespaceSelector', 'matchLabels', _NAMESPACE))}.orValue('')"
    values = f"e.?values.orValue([]).all(v, {cel.matches('v', pattern)})"
    expressions = (
        "p.?namespaceSelector.?matchExpressions.orValue([]).exists(e, "
        f"e.key == {cel.text(_NAMESPACE)} && e.operator == 'In' && {values})"
    )
    tests = ["(!p.?namespaceSelector.hasValue() && !p.?ipBlock.hasValue())", cel.matches(label, pattern), expressions]
    plain = [peer for peer in opened.peers if not _exceptions(peer)]
    if plain:
        tests.append(f"p in {json.dumps(plain)}")
    tests += [_same_range(peer) for peer in opened.peers if _exceptions(peer)]
    for peer, port in opened.known:
        only = f"r.ports.all(n, n.?port.orValue(0) == {port})"
        tests.append(f"(p == {json.dumps(peer)} && {_PORTS} && {only})")
    blocks = "p.?ipBlock.hasValue()"
    if opened.ranges:
        inside = f"{cel.texts(opened.ranges)}.exists(o, cidr(o).containsCIDR(p.ipBlock.cidr))"
        tests.append(f"({blocks} && {inside})")
    if opened.any_host:
        tests += [f"({_same_range(peer)} && {_PORTS})" for peer in egress.ANYWHERE]
        address = "cidr(p.ipBlock.cidr).ip()"
        single = f"cidr(p.ipBlock.cidr).prefixLength() == ({address}.family() == 4 ? 32 : 128)"
        never = f"{cel.texts(NO_PEERS)}.exists(n, cidr(n).containsIP({address}))"
        tests.append(f"({blocks} && {_PORTS} && {single} && {address}.isGlobalUnicast() && !{never})")
    return " || ".join(tests)


def _exceptions(peer: Mapping[str, Any]) -> list[str]:
    return [*peer.get("ipBlock", {}).get("except", ())]


def _same_range(peer: Mapping[str, Any]) -> str:
    """Return the expression that a peer is a range with exceptions: CEL has no mapping of a text and a list."""
    cidr, exceptions = cel.text(peer["ipBlock"]["cidr"]), cel.texts(_exceptions(peer))
    return f"(p.?ipBlock.?cidr.orValue('') == {cidr} && p.?ipBlock.?except.orValue([]) == {exceptions})"


NETWORK_POLICY_REACHES: tuple[Reach, ...] = (
    Reach("network", "connections", ("NetworkPolicy.networking.k8s.io",), (("spec",),), OpenedNetwork()),
)
