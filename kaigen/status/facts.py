"""Facts that live objects and the containers of runs report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from kaigen.cluster.pods import waiting
from kaigen.cluster.runs import ended_containers
from kaigen.kubernetes.manifest import Object, mapping, text
from kaigen.kubernetes.runs import end_of, time_of

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
    facts: dict[str, str] = {}
    started = text(mapping(run.get("status")).get("startTime"))
    ended = text((end_of(run) or {}).get("lastTransitionTime"))
    if started:
        facts["started"] = started
    if ended:
        facts["ended"] = ended
    if (begin := time_of(started)) and (end := time_of(ended)):
        facts["duration"] = _duration(int((end - begin).total_seconds()))
    for pod in pods:
        facts |= dict(_reported(pod))
    return facts


def _duration(seconds: int) -> str:
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours}h{minutes}m" if hours else f"{minutes}m{seconds % 60}s" if minutes else f"{seconds}s"


def _reported(pod: Object) -> Iterator[tuple[str, str]]:
    for ended in ended_containers(pod, "initContainerStatuses", "containerStatuses"):
        try:
            data = json.loads(text(ended.get("message")))
        except ValueError:
            continue
        for key, value in data.items() if isinstance(data, Mapping) else ():
            if isinstance(value, str | int | float):
                yield str(key), str(value)[:_MOST_TEXT]


def waiting_reason(pods: Iterable[Object]) -> str:
    """Return why pods do not run: no node, no image, a container that crashes; empty when none is waiting."""
    for found in filter(None, map(waiting, pods)):
        return f"{found.container}: {found.line}" if found.container else found.message
    return ""
