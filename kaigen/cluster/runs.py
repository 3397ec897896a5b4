"""What a Job does, from its status, its pods and its events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from kaigen.cluster.clues import NOTHING, Clues
from kaigen.cluster.waits import ending, of_event, retrying, waiting
from kaigen.kubernetes.manifest import Object, entries, mapping, text
from kaigen.kubernetes.runs import end_of

ENDED = ("Succeeded", "Failed")
"""Phases of a pod whose containers do not run any more."""

Phase = Literal["Pending", "Running", "Suspended", "Succeeded", "Failed"]


class RunState(Struct, frozen=True):
    """What a Job does.

    Attributes:
        phase: the word for it.
        message: why it waits or failed, and which attempt it is; may be empty.
        container: the init container that failed; empty for none.
    """

    phase: Phase
    message: str = ""
    container: str = ""


def run_state(job: Object, pods: Sequence[Object] | None = None, clues: Clues = NOTHING) -> RunState:
    """Return what a Job does.

    Args:
        job: the Job.
        pods: its pods, oldest first, which say why it waits or failed; None if they were not read.
        clues: events about the Job, its newest pod and its volumes, which say what is missing; if they were read.
    """
    status = mapping(job.get("status"))
    end = end_of(job)
    if end is not None and end["type"] != "Failed":
        return RunState("Succeeded", "Job completed successfully")
    if end is not None:
        return _failed(job, end, pods)
    suspension = _suspension(status)
    if suspension is not None or mapping(job.get("spec")).get("suspend") is True:
        return RunState("Suspended", suspension or "the Job is suspended")
    return _active(job, pods or (), clues)


def _active(job: Object, pods: Sequence[Object], clues: Clues) -> RunState:
    """Return what a Job does that has not ended."""
    status = mapping(job.get("status"))
    active = [pod for pod in pods if _phase(pod) != "Failed"]
    attempt = _attempt(job, pods, bool(active))
    if status.get("ready") or {_phase(pod) for pod in active} & {"Running", "Succeeded"}:
        return RunState("Running", _joined(attempt, *(retrying(pod, clues) for pod in active)))
    for pod in active:
        if found := waiting(pod, clues):
            return RunState("Pending", _joined(attempt, found.line))
    if not active and (found := of_event(job, clues)):
        return RunState("Pending", _joined(attempt, found.line))
    starting = "its pods are starting" if active or status.get("active") else "waiting for its pods"
    return RunState("Pending", attempt or starting)


def _phase(pod: Object) -> str:
    return text(mapping(pod.get("status")).get("phase"))


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _attempts(job: Object, pods: Sequence[Object]) -> tuple[int, int]:
    """Return how many pods of a Job failed, and how many may; nothing of a Job with several pods at a time."""
    spec, counted = mapping(job.get("spec")), mapping(job.get("status")).get("failed")
    limit = spec.get("backoffLimit")
    if not isinstance(limit, int) or spec.get("parallelism", 1) != 1 or spec.get("completions", 1) != 1:
        return 0, 0
    failed = max(counted if isinstance(counted, int) else 0, sum(_phase(pod) == "Failed" for pod in pods))
    return failed, limit + 1


def _attempt(job: Object, pods: Sequence[Object], is_active: bool) -> str:
    """Return which attempt it is, if one failed, and why."""
    failed, limit = _attempts(job, pods)
    if not failed:
        return ""
    found = failure(pods)
    why = f": {found.text}" if found is not None else ""
    if is_active and failed < limit:
        return f"attempt {failed + 1} of {limit}; attempt {failed} failed{why}"
    return f"attempt {failed} of {limit} failed{why}"


def _failed(job: Object, end: Object, pods: Sequence[Object] | None) -> RunState:
    """Return why a Job failed: what its containers said, or else what its controller says."""
    found = failure(pods or ())
    said = _message(end) or "Job failed"
    if found is None:
        if rule := _BY_POLICY.match(said):
            said = f"container {rule[1]}: exit code {rule[2]}"
        gone = "its pods were deleted, and with them what they said" if pods is not None and not pods else ""
        return RunState("Failed", _joined(said, gone))
    if end.get("reason") not in (None, "", *_OF_PODS):
        return RunState("Failed", f"{said}; the last failure: {found.text}", found.container)
    failed, _ = _attempts(job, pods or ())
    return RunState("Failed", found.text + (f" ({failed} attempts)" if failed > 1 else ""), found.container)


def _suspension(status: Object) -> str | None:
    """Return what the controller says of the suspension of a Job; None if it is not suspended."""
    for _, condition in entries(status.get("conditions")):
        if condition.get("type") == "Suspended" and condition.get("status") == "True":
            return _message(condition)
    return None


def _message(condition: Object) -> str:
    return text(condition.get("message")) or text(condition.get("reason"))


_OF_PODS = ("BackoffLimitExceeded", "PodFailurePolicy", "FailedIndexes", "MaxFailedIndexesExceeded")
"""Reasons of a failed Job that say no more than its pods do (source: Kubernetes 1.36, batch/v1)."""
_BY_POLICY = re.compile(r"Container (\S+) for pod \S+ failed with exit code (\d+) matching")
"""Source: Kubernetes 1.36, pkg/controller/job/pod_failure_policy.go."""


class Failure(Struct, frozen=True):
    """Why a pod failed.

    Attributes:
        text: how its containers ended, init containers first.
        container: the init container that failed; empty if the main ones did.
    """

    text: str
    container: str = ""


def failure(pods: Sequence[Object]) -> Failure | None:
    """Return why the newest pod failed that did; None if none did.

    Args:
        pods: pods, oldest first.
    """
    return next(filter(None, map(_failure_of, reversed(pods))), None)


def _failure_of(pod: Object) -> Failure | None:
    status = mapping(pod.get("status"))
    init = {text(each.get("name")) for _, each in entries(status.get("initContainerStatuses"))}
    several = len(entries(status.get("containerStatuses"))) > 1
    ended = [
        (text(each.get("name")), found)
        for field in ("initContainerStatuses", "containerStatuses")
        for _, each in entries(status.get(field))
        if (found := mapping(mapping(each.get("state")).get("terminated"))).get("exitCode")
    ]
    # Where one of them says why, the others were only ended with it.
    ended = [each for each in ended if each[1].get("message")] or ended
    lines = []
    for name, found in ended:
        kind = f"init container {name}: " if name in init else f"container {name}: " if several else ""
        lines.append(f"{kind}{ending(found)}")
    if lines:
        return Failure(_joined(*lines), next((name for name, _ in ended if name in init), ""))
    why = ": ".join(filter(None, (text(status.get("reason")), text(status.get("message")))))
    return Failure(why) if _phase(pod) == "Failed" and why else None


def ended_containers(pod: Object, *fields: str) -> Iterable[Object]:
    """Yield how containers of a pod ended.

    Args:
        pod: the pod.
        fields: lists of its status, such as `containerStatuses`.
    """
    for field in fields:
        for _, container in entries(mapping(pod.get("status")).get(field)):
            yield mapping(mapping(container.get("state")).get("terminated"))
