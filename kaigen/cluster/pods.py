"""What pods of a cluster wait for."""

from __future__ import annotations

from msgspec import Struct

from kaigen.kubernetes.manifest import Object, entries, mapping, text

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
