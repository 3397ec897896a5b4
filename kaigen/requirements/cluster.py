"""Asks a cluster what it has of the requirements of an environment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from kaigen.kubectl.runner import Forbidden, Kubectl
from kaigen.kubernetes.cluster_needs import DEFAULT_CLASS
from kaigen.kubernetes.manifest import entries, mapping, text
from kaigen.kubernetes.quantities import nano
from kaigen.kubernetes.requests import readable
from kaigen.kubernetes.storage_classes import is_default
from kaigen.requirements.model import Requirement, Requirements, Total, Use

Status = Literal["found", "missing", "unknown"]


class Finding(Struct, frozen=True):
    """What a cluster has of a requirement.

    Attributes:
        status: `unknown` when the user may not read it.
        detail: more about it; may be empty.
    """

    status: Status
    detail: str = ""


_FOUND = Finding("found")
_MISSING = Finding("missing")


class Cluster:
    """A cluster. Nothing is written to it, and no value of a Secret is read."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def findings(self, found: Requirements) -> dict[Requirement, Finding]:
        """Return what the cluster has of each requirement, and which quotas are too small.

        Raises:
            SystemFailure: kubectl is missing, or cannot reach the cluster.
        """
        result = {item: self._find(item) for item in found.items}
        for total in found.totals:
            for requirement, finding in self._quota(total):
                result[requirement] = finding
        return result

    def _find(self, item: Requirement) -> Finding:
        try:
            match item.kind:
                case "API":
                    return self._api(item.name)
                case "Kubernetes":
                    return self._version(item.name)
                case "resource":
                    return self._resource(item.name)
                case "StorageClass" if item.name == DEFAULT_CLASS:
                    return _FOUND if any(map(is_default, self._kubectl.items("storageclasses"))) else _MISSING
            return self._object(item)
        except Forbidden:
            return Finding("unknown", "not allowed to read it")

    def _api(self, name: str) -> Finding:
        version, _, kind = name.partition(" ")
        answer = self._kubectl.json("get", "--raw", f"/apis/{version}")
        if answer is None:
            return _MISSING
        kinds = {text(resource.get("kind")) for _, resource in entries(answer.get("resources"))}
        return _FOUND if not kind or "/" not in version or kind in kinds else _MISSING

    def _version(self, target: str) -> Finding:
        answer = self._kubectl.json("get", "--raw", "/version") or {}
        own = f"{answer.get('major', '')}.{str(answer.get('minor', '')).rstrip('+')}"
        older = _numbers(own) < _numbers(target)
        return Finding("missing" if older else "found", f"version {own}")

    def _resource(self, name: str) -> Finding:
        amounts = [
            nano(mapping(mapping(node.get("status")).get("allocatable")).get(name)) or 0
            for node in self._nodes
        ]
        nodes = sum(amount > 0 for amount in amounts)
        if not nodes:
            return Finding("missing", "on no node")
        return Finding("found", f"{readable(name, sum(amounts))} on {nodes} node{'' if nodes == 1 else 's'}")

    def _object(self, item: Requirement) -> Finding:
        where = (f"--namespace={item.namespace}",) if item.namespace else ()
        # A table, because that has no values of Secrets.
        lines = self._kubectl.run("get", (item.type or item.kind).lower(), item.name, "--no-headers", *where)
        return _FOUND if lines else _MISSING

    def _quota(self, total: Total) -> Iterator[tuple[Requirement, Finding]]:
        names = {total.resource, f"requests.{total.resource}"}
        try:
            quotas = self._kubectl.items("resourcequotas", f"--namespace={total.namespace}")
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
        return self._kubectl.items("nodes")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
