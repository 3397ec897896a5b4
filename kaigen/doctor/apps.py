"""Checks of what the apps of an environment need: their requirements, and the reaper for what expires."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kaigen.cluster.errors import Forbidden
from kaigen.doctor.model import Check
from kaigen.kubernetes.manifest import identity_of, mapping
from kaigen.kubernetes.metadata_keys import EXPIRES
from kaigen.requirements.cluster import Finding
from kaigen.requirements.model import Requirement

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster
    from kaigen.pipeline.result import Compiled

_REAPER = "app.kubernetes.io/name=kaigen-reaper"
_REAPER_KINDS = ("apps/v1/Deployment", "batch/v1/CronJob")


def check_requirements(findings: Mapping[Requirement, Finding]) -> Iterator[Check]:
    """Yield a check for each requirement that is not found, and one for all others.

    Args:
        findings: what the cluster has of the requirements.
    """
    found = sum(each.status == "found" for each in findings.values())
    yield Check("requirements", "ok", f"{found} found; `kaigen requirements` lists them")
    for item, finding in findings.items():
        if finding.status == "found":
            continue
        places = ", ".join(dict.fromkeys(use.place or use.app for use in item.uses if use.place or use.app))
        needed = f"; needed at {places}" if places else ""
        if finding.status == "unknown":
            fix = f"ask for `get` on this {item.kind}, or check it with somebody who may read it"
            yield Check(f"{item.kind} {item.title}", "warning", f"{finding.detail}{needed}", fix)
        else:
            detail = finding.detail or "not in the cluster"
            yield Check(f"{item.kind} {item.title}", "failed", f"{detail}{needed}", _fix(item))


def _fix(item: Requirement) -> str:
    if item.supplier:
        return f"install {item.supplier}"
    match item.kind:
        case "Namespace":
            return f"kubectl create namespace {item.name}"
        case "Secret":
            return "create it: `kaigen secrets` prints the command with the keys"
        case "Kubernetes":
            return "upgrade the cluster, or set `kubernetes` in kaigen.yaml to its version"
        case "resource":
            return f"add nodes that offer {item.name}"
        case "ResourceQuota":
            return "raise the quota, or request less"
    return f"create the {item.kind} {item.title}"


def expiring(apps: Iterable[Compiled]) -> list[str]:
    """Return the apps whose pods or volumes expire, `NAMESPACE/NAME`."""
    return [
        f"{item.app.namespace}/{item.app.name}"
        for item in apps
        if any(EXPIRES in mapping(mapping(each.body.get("metadata")).get("labels")) for each in item.objects)
    ]


def check_reaper(cluster: Cluster, namespaces: Iterable[str], users: list[str]) -> Check:
    """Return whether the reaper is in the cluster.

    Args:
        cluster: the cluster.
        namespaces: where it is looked for if the user may not read all namespaces.
        users: the apps that need it.
    """
    places = []
    readable = False
    for where in ("", *namespaces):
        try:
            found = [item for kind in _REAPER_KINDS for item in cluster.objects(kind, where, _REAPER)]
        except Forbidden:
            continue
        readable = True
        places += [f"{identity.namespace}/{identity.name}" for identity in map(identity_of, found)]
        if not where:
            break
    if places:
        return Check("reaper", "ok", ", ".join(places))
    fix = "install kaigen-reaper, which deletes pods and volumes whose TTL has ended"
    if not readable:
        return Check("reaper", "warning", "not allowed to list deployments and cronjobs", fix)
    if users:
        return Check("reaper", "failed", f"not found, and these apps expire: {', '.join(users)}", fix)
    return Check("reaper", "ok", "not found; no app of the repository needs it")
