"""Asks a cluster what it has of the requirements of an environment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kaigen.cluster.errors import Forbidden
from kaigen.core.text import plural
from kaigen.kubernetes.claims import INGRESS_CLASS, STORAGE_CLASS, is_default
from kaigen.kubernetes.cluster_needs import DEFAULT_CLASS
from kaigen.kubernetes.manifest import entries, mapping, text
from kaigen.kubernetes.quantities import nano
from kaigen.kubernetes.requests import readable
from kaigen.requirements.model import Finding, Requirement, Requirements, Total, Use
from kaigen.requirements.node_capacity import NODE, pod_findings

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster

_ACCEPTING = ("Accepted", "Active", "Programmed")
"""Conditions of classes, gateways and queues that say whether their controller uses them."""
_NODE_POOL = "NodePool.karpenter.sh"
_FOUND = Finding("found")
_MISSING = Finding("missing")


def findings_of(found: Requirements, cluster: Cluster) -> dict[Requirement, Finding]:
    """Return what a cluster has of each requirement, and which quotas are too small.

    Nothing is written to it, and no value of a Secret is read.

    Raises:
        SystemFailure: the cluster cannot be reached.
    """
    search = _Search(cluster)
    result = {item: search.find(item) for item in found.items}
    for total in found.totals:
        for requirement, finding in search.quota(total):
            result[requirement] = finding
    for requirement, finding in search.pods(found):
        result[requirement] = finding
    return result


class _Search:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def find(self, item: Requirement) -> Finding:
        try:
            match item.kind:
                case "API":
                    return self._api(item.name)
                case "Kubernetes":
                    return self._version(item.name)
                case "resource":
                    return self._resource(item.name)
                case "StorageClass" if item.name == DEFAULT_CLASS:
                    return _FOUND if any(map(is_default, self._cluster.objects(STORAGE_CLASS))) else _MISSING
                case "IngressClass" if item.name == DEFAULT_CLASS:
                    return _FOUND if any(map(is_default, self._cluster.objects(INGRESS_CLASS))) else _MISSING
                case "GatewayClass" | "Gateway" | "LocalQueue" | "ClusterQueue":
                    return self._working(item)
            return self._object(item)
        except Forbidden:
            return Finding("unknown", "not allowed to read it")

    def _api(self, name: str) -> Finding:
        version, _, kind = name.partition(" ")
        answer = self._cluster.read(f"/apis/{version}")
        if answer is None:
            return _MISSING
        kinds = {text(resource.get("kind")) for _, resource in entries(answer.get("resources"))}
        return _FOUND if not kind or "/" not in version or kind in kinds else _MISSING

    def _version(self, target: str) -> Finding:
        answer = self._cluster.request("GET", "/version")
        own = f"{answer.get('major', '')}.{str(answer.get('minor', '')).rstrip('+')}"
        older = _numbers(own) < _numbers(target)
        return Finding("missing" if older else "found", f"version {own}")

    def _resource(self, name: str) -> Finding:
        amounts = [nano(mapping(mapping(node.get("status")).get("allocatable")).get(name)) or 0 for node in self._nodes]
        nodes = sum(amount > 0 for amount in amounts)
        if not nodes:
            return Finding("missing", "on no node")
        return Finding("found", f"{readable(name, sum(amounts))} on {plural(nodes, 'node')}")

    def _object(self, item: Requirement) -> Finding:
        return _FOUND if self._cluster.has(item.type or item.kind, item.namespace, item.name) else _MISSING

    def _working(self, item: Requirement) -> Finding:
        """Return whether there is an object, and whether its controller has accepted it."""
        found = self._cluster.object_of_type(item.type or item.kind, item.namespace, item.name)
        if found is None:
            return _MISSING
        for _, condition in entries(mapping(found.get("status")).get("conditions")):
            if condition.get("type") in _ACCEPTING and condition.get("status") == "False":
                why = text(condition.get("message")) or text(condition.get("reason"))
                return Finding("missing", f"{text(condition.get('type'))} is False: {why}")
        return _FOUND

    def pods(self, found: Requirements) -> Iterator[tuple[Requirement, Finding]]:
        """Yield whether the nodes have room for the largest pod of each app."""
        if not found.pods:
            return
        try:
            nodes = self._nodes
            pools = [*found.pools, *self._cluster.objects_of_type(_NODE_POOL)]
        except Forbidden:
            uses = tuple(dict.fromkeys(pod.use for pod in found.pods))
            yield Requirement(NODE, "for the largest pods", uses=uses), Finding("unknown", "not allowed to list nodes")
            return
        yield from pod_findings(found.pods, nodes, pools)

    def quota(self, total: Total) -> Iterator[tuple[Requirement, Finding]]:
        names = {total.resource, f"requests.{total.resource}"}
        try:
            quotas = self._cluster.objects("v1/ResourceQuota", total.namespace)
        except Forbidden:
            return
        for quota in quotas:
            for name, value in mapping(mapping(quota.get("spec")).get("hard")).items():
                limit = nano(value)
                if name in names and limit is not None:
                    requirement = Requirement(
                        "ResourceQuota",
                        f"{text(mapping(quota.get('metadata')).get('name'))} {name}",
                        total.namespace,
                        uses=total.uses or (Use("", ""),),
                    )
                    wanted, has = readable(total.resource, total.amount), str(value)
                    if limit < total.amount:
                        yield requirement, Finding("missing", f"{has}, the apps request {wanted}")
                    else:
                        yield requirement, Finding("found", f"{has}, the apps request {wanted}")

    @cached_property
    def _nodes(self) -> list[dict[str, Any]]:
        return self._cluster.objects("v1/Node")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
