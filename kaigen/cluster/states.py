"""The state of an object in a cluster, from its status.

The rules for kinds of Kubernetes are those of its own tools: `kubectl rollout status` for Deployments and StatefulSets,
conditions for all others. Kinds of other systems have their conditions in the table of object kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from kaigen.cluster.clues import NOTHING, Clues
from kaigen.cluster.runs import Phase, run_state
from kaigen.kubernetes.kind_table import find_kind
from kaigen.kubernetes.manifest import Object, entries, mapping, text
from kaigen.kubernetes.object_kind import HealthConditions
from kaigen.kubernetes.requests import is_scaled_live

StateName = Literal["ready", "progressing", "suspended", "failed", "missing", "unknown"]


class State(Struct, frozen=True):
    """The state of an object.

    Attributes:
        name: `ready` also for a run that is complete.
        message: why it is not ready; may be empty.
        wanted: whether it is not ready because it shall not be.
    """

    name: StateName
    message: str = ""
    wanted: bool = False


READY = State("ready")
MISSING = State("missing", "not in the cluster")


def live_state(obj: Object) -> State:
    """Return the state of an object of a cluster. A kind without a status is ready once it is there."""
    metadata, status = mapping(obj.get("metadata")), mapping(obj.get("status"))
    if metadata.get("deletionTimestamp"):
        return State("progressing", "is being deleted")
    seen, generation = status.get("observedGeneration"), metadata.get("generation")
    if isinstance(seen, int) and isinstance(generation, int) and seen < generation:
        return State("progressing", "waiting for its controller")
    row = find_kind(text(obj.get("apiVersion")), text(obj.get("kind")))
    rule = _RULES.get(row.type)
    if rule is not None:
        state = rule(mapping(obj.get("spec")), status)
        return State("suspended", wanted=True) if state.name == "ready" and _is_stopped(obj) else state
    health = row.health or _HEALTH.get(row.type)
    return _by_conditions(health, status) if health else READY


def _is_stopped(obj: Object) -> bool:
    """Return whether a workload has no pod because a program of kaigen's or a user wants so."""
    return mapping(obj.get("spec")).get("replicas") == 0 and is_scaled_live(obj)


def has_state(obj: Object) -> bool:
    """Return whether the objects of a kind have more states than being there."""
    row = find_kind(text(obj.get("apiVersion")), text(obj.get("kind")))
    return row.type in _RULES or row.type in _HEALTH or row.health is not None


def _conditions(holder: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield type, status and message of each condition."""
    for _, item in entries(holder.get("conditions")):
        message = text(item.get("message")) or text(item.get("reason"))
        yield text(item.get("type")), text(item.get("status")), message


def _by_conditions(health: HealthConditions, status: Mapping[str, Any]) -> State:
    holders = [item for _, item in entries(status.get(health.at))] if health.at else [status]
    found = State("progressing", "waiting for its controller")
    order: list[StateName] = ["progressing", "ready", "suspended", "failed"]
    for holder in holders:
        for kind, value, message in _conditions(holder):
            name: StateName | None = None
            if value == "True" and kind in health.healthy:
                name, message = "ready", ""
            elif value == "True" and kind in health.suspended:
                name = "suspended"
            elif (value == "True" and kind in health.degraded) or (value == "False" and kind in health.broken):
                name = "failed"
            if name and order.index(name) > order.index(found.name):
                found = State(name, message)
    return found


def _run(spec: Mapping[str, Any], status: Mapping[str, Any]) -> State:
    return job_state({"spec": spec, "status": status})


def job_state(job: Object, pods: Sequence[Object] | None = None, clues: Clues = NOTHING) -> State:
    """Return the state of a Job.

    Args:
        job: the Job.
        pods: its pods, oldest first; None if they were not read.
        clues: events about it and its pods, and its volumes.
    """
    found = run_state(job, pods, clues)
    if found.phase == "Succeeded":
        return READY
    return State(_OF_PHASE[found.phase], found.message or "running")


def _rollout(spec: Mapping[str, Any], status: Mapping[str, Any]) -> State:
    for kind, value, message in _conditions(status):
        if kind == "Progressing" and value == "False":
            return State("failed", message)
        if kind == "ReplicaFailure" and value == "True":
            return State("failed", message)
    wanted = _count(spec, "replicas", 1)
    return _replicas(wanted, _count(status, "updatedReplicas"), _count(status, "availableReplicas"), status)


def _ordered_rollout(spec: Mapping[str, Any], status: Mapping[str, Any]) -> State:
    wanted = _count(spec, "replicas", 1)
    same = status.get("currentRevision") == status.get("updateRevision")
    updated = _count(status, "currentReplicas" if same else "updatedReplicas")
    return _replicas(wanted, updated, _count(status, "readyReplicas"), status)


def _replicas(wanted: int, updated: int, ready: int, status: Mapping[str, Any]) -> State:
    if updated < wanted:
        return State("progressing", f"{updated} of {wanted} replicas are updated")
    if _count(status, "replicas") > wanted:
        return State("progressing", "old replicas are being deleted")
    if ready < wanted:
        return State("progressing", f"{ready} of {wanted} replicas are ready")
    return READY


def _on_nodes(spec: Mapping[str, Any], status: Mapping[str, Any]) -> State:
    del spec
    wanted = _count(status, "desiredNumberScheduled")
    return _replicas(wanted, _count(status, "updatedNumberScheduled"), _count(status, "numberReady"), {})


def _claim(spec: Mapping[str, Any], status: Mapping[str, Any]) -> State:
    del spec
    phase = text(status.get("phase"))
    if phase == "Bound":
        return READY
    if phase == "Lost":
        return State("failed", "its volume does not exist any more")
    return State("progressing", "waiting for a volume")


def _schedule(spec: Mapping[str, Any], status: Mapping[str, Any]) -> State:
    del status
    return State("ready", "no further runs start: it is suspended") if spec.get("suspend") is True else READY


def _pod(spec: Mapping[str, Any], status: Mapping[str, Any]) -> State:
    del spec
    phase = text(status.get("phase"))
    if phase == "Failed":
        return State("failed", text(status.get("message")) or text(status.get("reason")))
    ready = any(kind == "Ready" and value == "True" for kind, value, _ in _conditions(status))
    return READY if phase == "Succeeded" or ready else State("progressing", phase)


def _count(holder: Mapping[str, Any], name: str, default: int = 0) -> int:
    value = holder.get(name)
    return value if isinstance(value, int) else default


_OF_PHASE: Mapping[Phase, StateName] = {
    "Pending": "progressing",
    "Running": "progressing",
    "Suspended": "suspended",
    "Failed": "failed",
}
_ROUTE = HealthConditions(("Accepted",), broken=("Accepted", "ResolvedRefs"), at="parents")
_HEALTH: Mapping[str, HealthConditions] = {
    # https://gateway-api.sigs.k8s.io/reference/spec/, 2026-11-01
    "Gateway.gateway.networking.k8s.io": HealthConditions(("Programmed",), broken=("Accepted",)),
    "HTTPRoute.gateway.networking.k8s.io": _ROUTE,
    "GRPCRoute.gateway.networking.k8s.io": _ROUTE,
    "TCPRoute.gateway.networking.k8s.io": _ROUTE,
    # https://external-secrets.io/latest/api/externalsecret/, 2026-11-01
    "ExternalSecret.external-secrets.io": HealthConditions(("Ready",), broken=("Ready",)),
    # https://keda.sh/docs/latest/reference/scaledobject-spec/, 2026-11-01
    "ScaledObject.keda.sh": HealthConditions(("Ready",), broken=("Ready",)),
}
"""Conditions of kinds that Argo CD and Flux know, so that the table of object kinds does not have them."""

_RULES: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], State]] = {
    "Job.batch": _run,
    "CronJob.batch": _schedule,
    "Deployment.apps": _rollout,
    "StatefulSet.apps": _ordered_rollout,
    "DaemonSet.apps": _on_nodes,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
}
