"""Facts that live objects and the containers of runs report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from kaigen.kubernetes.manifest import Object, entries, mapping, text

_MOST_TEXT = 200
"""Most characters of a value that a container reports."""


def object_facts(objects: Iterable[Object]) -> dict[str, str]:
    """Return what objects report: the size of volumes, and how many replicas are ready."""
    facts: dict[str, str] = {}
    for obj in objects:
        status = mapping(obj.get("status"))
        capacity = text(mapping(status.get("capacity")).get("storage"))
        if capacity:
            facts["storage"] = f"{facts['storage']}+{capacity}" if "storage" in facts else capacity
        wanted = mapping(obj.get("spec")).get("replicas")
        if isinstance(wanted, int) and not isinstance(wanted, bool):
            ready = status.get("readyReplicas")
            facts["replicas"] = f"{ready if isinstance(ready, int) else 0}/{wanted}"
    return facts


def run_facts(run: Object, pods: Iterable[Object]) -> dict[str, str]:
    """Return start, end and duration of a run, and what the containers of its pods wrote as they ended.

    A container reports facts as a JSON object in its termination message.

    Args:
        run: the Job or JobSet.
        pods: the pods of the run that the cluster still has.
    """
    status = mapping(run.get("status"))
    facts: dict[str, str] = {}
    started, ended = text(status.get("startTime")), _end(status)
    if started:
        facts["started"] = started
    if ended:
        facts["ended"] = ended
    if started and ended:
        facts["duration"] = _duration(started, ended)
    for pod in pods:
        facts |= dict(_reported(pod))
    return facts


def _end(status: Object) -> str:
    """Return when a run ended; empty while it runs."""
    for _, condition in entries(status.get("conditions")):
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Completed", "Failed"):
            return text(condition.get("lastTransitionTime"))
    return ""


def _duration(started: str, ended: str) -> str:
    seconds = int((_time(ended) - _time(started)).total_seconds())
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours}h{minutes}m" if hours else f"{minutes}m{seconds % 60}s" if minutes else f"{seconds}s"


def _time(value: str) -> datetime:
    return datetime.fromisoformat(value.replace("Z", "+00:00"))


def _reported(pod: Object) -> Iterator[tuple[str, str]]:
    for ended in _ended_containers(pod):
        try:
            data = json.loads(text(ended.get("message")))
        except ValueError:
            continue
        for key, value in data.items() if isinstance(data, Mapping) else ():
            if isinstance(value, str | int | float):
                yield str(key), str(value)[:_MOST_TEXT]


def _ended_containers(pod: Object) -> Iterator[Object]:
    status = mapping(pod.get("status"))
    for field in ("initContainerStatuses", "containerStatuses"):
        for _, container in entries(status.get(field)):
            yield mapping(mapping(container.get("state")).get("terminated"))


def waiting_reason(pods: Iterable[Object]) -> str:
    """Return why pods do not run: no node, no image, a container that crashes; empty when none is waiting."""
    for pod in pods:
        status = mapping(pod.get("status"))
        for _, condition in entries(status.get("conditions")):
            if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                return text(condition.get("message"))
        for field in ("initContainerStatuses", "containerStatuses"):
            for _, container in entries(status.get(field)):
                waiting = mapping(mapping(container.get("state")).get("waiting"))
                reason = text(waiting.get("reason"))
                if reason and reason not in ("PodInitializing", "ContainerCreating"):
                    message = text(waiting.get("message"))
                    return f"{text(container.get('name'))}: {reason}{f': {message}' if message else ''}"
    return ""
