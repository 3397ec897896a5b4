"""What a Job does, from its status and its pods, and what its pods wait for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from kaigen.kubernetes.manifest import Object, entries, mapping, text
from kaigen.kubernetes.runs import end_of

ENDED = ("Succeeded", "Failed")
"""Phases of a pod whose containers do not run any more."""

_HOPELESS = {"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"}
_STARTING = ("", "PodInitializing", "ContainerCreating")


class Waiting(Struct, frozen=True):
    """Why a pod waits.

    Attributes:
        reason: in a word, such as `ImagePullBackOff`; may be empty.
        message: in a sentence; may be empty.
        container: the container that waits; empty if the pod has no node yet.
    """

    reason: str
    message: str = ""
    container: str = ""

    @property
    def line(self) -> str:
        """Reason and message."""
        return ": ".join(filter(None, (self.reason, self.message)))

    @property
    def is_hopeless(self) -> bool:
        """Whether the container does not start by itself."""
        return self.reason in _HOPELESS


def waiting(pod: Object) -> Waiting | None:
    """Return why a pod waits: for a node, for an image, after a crash; None when it does not, or is starting."""
    status = mapping(pod.get("status"))
    for _, condition in entries(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return Waiting(text(condition.get("reason")), text(condition.get("message")))
    for field in ("initContainerStatuses", "containerStatuses"):
        for _, container in entries(status.get(field)):
            found = mapping(mapping(container.get("state")).get("waiting"))
            if text(found.get("reason")) not in _STARTING:
                name = text(container.get("name"))
                return Waiting(text(found.get("reason")), text(found.get("message")), name)
    return None


Phase = Literal["Pending", "Running", "Suspended", "Succeeded", "Failed"]


class RunState(Struct, frozen=True):
    """What a Job does.

    Attributes:
        phase: the word for it.
        message: why it waits or failed; may be empty.
    """

    phase: Phase
    message: str = ""


def run_state(job: Object, pods: Sequence[dict[str, Any]] = ()) -> RunState:
    """Return what a Job does.

    Args:
        job: the Job.
        pods: its pods, oldest first, which say why it waits or failed; none if they were not read.
    """
    status = mapping(job.get("status"))
    end = end_of(job)
    if end is not None and end["type"] != "Failed":
        return RunState("Succeeded", "Job completed successfully")
    if end is not None:
        return RunState("Failed", _failure(pods) or _message(end) or "Job failed")
    suspension = _suspension(status)
    if suspension is not None or mapping(job.get("spec")).get("suspend") is True:
        return RunState("Suspended", suspension or "the Job is suspended")
    phases = {mapping(pod.get("status")).get("phase") for pod in pods}
    if status.get("ready") or phases & {"Running", "Succeeded"}:
        return RunState("Running")
    for found in filter(None, map(waiting, pods)):
        return RunState("Pending", found.line)
    return RunState("Pending", "its pods are starting" if pods or status.get("active") else "waiting for its pods")


def _suspension(status: Object) -> str | None:
    """Return what the controller says of the suspension of a Job; None if it is not suspended."""
    for _, condition in entries(status.get("conditions")):
        if condition.get("type") == "Suspended" and condition.get("status") == "True":
            return _message(condition)
    return None


def _message(condition: Object) -> str:
    return text(condition.get("message")) or text(condition.get("reason"))


def _failure(pods: Sequence[Object]) -> str:
    """Return the end of what the newest failed container said."""
    for pod in reversed(pods):
        for ended in ended_containers(pod, "containerStatuses"):
            if code := ended.get("exitCode"):
                said = (text(ended.get("message")) or text(ended.get("reason"))).strip()[-500:]
                return f"exit code {code}" + (f": {said}" if said else "")
    return ""


def ended_containers(pod: Object, *fields: str) -> Iterable[Object]:
    """Yield how containers of a pod ended.

    Args:
        pod: the pod.
        fields: lists of its status, such as `containerStatuses`.
    """
    for field in fields:
        for _, container in entries(mapping(pod.get("status")).get(field)):
            yield mapping(mapping(container.get("state")).get("terminated"))
