"""What a cluster says about an object besides its status: its events, and the volume claims of a pod."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.cluster.errors import Forbidden
from kaigen.core.text import printable
from kaigen.kubernetes.manifest import Object, mapping, text

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster
    from kaigen.kubernetes.manifest import Manifest

_EVENT = "v1/Event"
_CLAIM = "v1/PersistentVolumeClaim"

_TELLING = {"FailedBinding", "ExternalProvisioning"}
"""Reasons of events of the type Normal that say why a volume claim waits. Source: Kubernetes 1.36,
pkg/controller/volume/persistentvolume/pv_controller.go."""

_VARYING = re.compile(r'^(\(combined from similar events\): )?(Error creating: )?(pods "[^"]*" is forbidden: )?')
"""Beginning of the message about a pod that could not be created; it has another name each time."""


class Clues(Struct, frozen=True):
    """What a cluster says besides the status of objects.

    Attributes:
        events: events about the objects, in any order.
        claims: volume claims.
        lines: why pods try a download again: the last lines of their logs, by namespace and name of the pod.
    """

    events: Sequence[Object] = ()
    claims: Sequence[Object] = ()
    lines: Mapping[str, str] = {}


NOTHING = Clues()


def read_events(cluster: Cluster, namespace: str, names: Iterable[str]) -> list[Manifest]:
    """Return the events about objects of some names; none if the user may not list them."""
    try:
        return [
            event
            for name in dict.fromkeys(names)
            for event in cluster.objects(_EVENT, namespace, fields=f"involvedObject.name={name}")
        ]
    except Forbidden:
        return []


def read_claims(cluster: Cluster, namespace: str, names: Iterable[str]) -> list[Manifest]:
    """Return the volume claims of some names that exist; none if the user may not read them."""
    try:
        found = [cluster.find(_CLAIM, name, namespace) for name in names]
    except Forbidden:
        return []
    return [claim for claim in found if claim is not None]


def event_time(event: Object) -> str:
    """Return when an event was last seen, as a timestamp."""
    series = mapping(event.get("series"))
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    created = text(mapping(event.get("metadata")).get("creationTimestamp"))
    return next((str(value)[:19] + "Z" for value in times if value), created)


def last_event(obj: Object, events: Iterable[Object]) -> Object | None:
    """Return the newest event about an object, and not about an earlier one of its name; None if there is none.

    Of several in the same second, it is a warning.
    """
    metadata = mapping(obj.get("metadata"))

    def is_about(event: Object) -> bool:
        about = mapping(event.get("involvedObject"))
        return about.get("uid") == metadata.get("uid") and about.get("name") == metadata.get("name")

    found = filter(is_about, events)
    return max(found, key=lambda event: (event_time(event), event.get("type") == "Warning"), default=None)


def complaint(obj: Object, events: Iterable[Object]) -> tuple[str, str]:
    """Return reason and message of the newest event about an object, if it says what is wrong; else nothing."""
    found = last_event(obj, events)
    reason = text(found.get("reason")) if found is not None else ""
    if found is None or (found.get("type") != "Warning" and reason not in _TELLING):
        return "", ""
    return reason, _VARYING.sub("", printable(" ".join(text(found.get("message")).split())))
