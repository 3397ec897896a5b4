"""Every field of the usual kinds that is named like a server, address or file has a rule for tenants, or a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import steps_of
from kaigen.kubernetes.rights import USUAL_KINDS
from kaigen.kubernetes.schema_nodes import Node
from kaigen.kubernetes.schemas import definition, index
from kaigen.tenancy.reach import PODS
from kaigen.tenancy.rows.pods import IN_TREE
from kaigen.tenancy.table import REACHES

_NAME = re.compile(
    r"(?i:.*(url|uri|address|addresses|hosts?|hostnames?|servers?|nameservers|endpoints?|ips?|externalname|namespace))"
    r"|.*File|filePath"
)
KNOWN = (
    *USUAL_KINDS,
    "EndpointSlice.discovery.k8s.io",
    "Endpoints",
    "ScaledJob.keda.sh",
    "ServiceMonitor.monitoring.coreos.com",
    "TriggerAuthentication.keda.sh",
)
REASONS = {
    # Pods: what a container resolves and connects to is not limited, except by NetworkPolicies.
    "dnsConfig.nameservers": "for the pod itself",
    "hostAliases.[].ip": "for the pod itself",
    "hostAliases.[].hostnames": "for the pod itself",
    "spec.hostname": "its own name",
    "template.spec.volumes.[].ephemeral.volumeClaimTemplate.spec.dataSourceRef.namespace": "a rule has all volumes",
    "spec.shareProcessNamespace": "of its own containers",
    "httpGet.host": "a control of Pod Security, from the level baseline on",
    "tcpSocket.host": "a control of Pod Security, from the level baseline on",
    "ports.[].hostIP": "with hostPort, a control of Pod Security",
    # Services and routes
    "spec.clusterIP": "an address of the range for Services, which only one has",
    "spec.clusterIPs": "an address of the range for Services, which only one has",
    "spec.publishNotReadyAddresses": "a switch",
    "sessionAffinityConfig.clientIP": "a time",
    "requestRedirect.hostname": "clients connect to it, and not the Gateway",
    "urlRewrite.hostname": "a header for a backend that has a rule",
    "spec.network.enableDNSHostnames": "a switch",
    "spec.network.publishNotReadyAddresses": "a switch",
    # Access
    "subjects.[].namespace": "who may use the tenant's own role",
    "secrets.[].namespace": "ignored by Kubernetes",
    # Endpoints: the names of pods and nodes
    "endpoints.[].hostname": "its own name",
    "addresses.[].hostname": "its own name",
    "notReadyAddresses.[].hostname": "its own name",
    "targetRef.namespace": "for readers",
}
"""Fields without a rule, by the end of their path."""


def fields(node: Node, path: tuple[str, ...], above: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all fields of a schema."""
    if isinstance(node, str):
        if "/" in node and node not in above:
            found = definition(node, index()["targets"][-1])
            if found is not None:
                yield from fields(found, path, above | {node})
        return
    for name, child in node.get("p", {}).items():
        yield (*path, name)
        yield from fields(child, (*path, name), above)
    if "m" in node:
        yield from fields(node["m"], (*path, "{}"), above)
    if "l" in node:
        yield from fields(node["l"], (*path, "[]"), above)
    for each in (*node.get("one", ()), *node.get("any", ())):
        yield from fields(each, path, above)


def fields_with_servers(type_: str) -> set[tuple[str, ...]]:
    """Return the paths of fields of a kind that are named like servers, without metadata and status."""
    kind, _, group = type_.partition(".")
    (*_, ref) = [
        entry["ref"]
        for version, entry in index()["kinds"][kind].items()
        if version.rpartition("/")[0] == group and "ref" in entry
    ]
    return {
        path
        for path in fields(ref, (), frozenset())
        if _NAME.fullmatch(path[-1]) and "metadata" not in path and path[0] != "status"
    }


def ruled(type_: str) -> set[tuple[str, ...]]:
    """Return the paths of a kind that rules check."""
    row = KINDS.get(type_)
    places = [steps_of(place.path) if place.path else () for place in row.pods] if row else []
    found = set()
    for reach in REACHES:
        if type_ in reach.types:
            found |= set(reach.paths)
        if reach.types == (PODS,):
            found |= {(*place, "spec", *path) for place in places for path in reach.paths}
    return found


def is_covered(path: tuple[str, ...], rule: tuple[str, ...]) -> bool:
    """Return whether a rule checks a field, the mapping that it is in, or what is in it."""
    return path == rule[: len(path)] or path[:-1] == rule


@pytest.mark.parametrize("type_", KNOWN)
def test_a_field_that_is_named_like_a_server_has_a_rule_or_a_reason(type_: str) -> None:
    rules = ruled(type_)
    open_fields = set()
    for path in fields_with_servers(type_):
        text = ".".join(path)
        covered = any(is_covered(path, rule) for rule in rules)
        in_tree = any(re.fullmatch(IN_TREE, step) for step in path)
        reason = any(text == each or text.endswith(f".{each}") for each in REASONS)
        if not (covered or in_tree or reason):
            open_fields.add(text)
    assert open_fields == set()
