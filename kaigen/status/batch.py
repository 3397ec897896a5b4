"""The progress of batches: what the newest line of the program in each pod says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubernetes.manifest import Manifest, Object, api_path, entries, mapping, text
from kaigen.programs.files import program

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster

_PROGRAM = program("generate.py")
_LINE = re.compile(rb"^shard [0-9]+: .*; ([0-9]{1,15}) of ([1-9][0-9]{0,14}) lines of all shards\s*$")
_TAIL = "200"
"""Last lines of a log that are read: the engine's are among them."""
_CALLS = 4
_LOG_S = 5
_JOB = "batch.kubernetes.io/job-name"


def batch_progress(cluster: Cluster, pods: Iterable[Manifest]) -> Mapping[tuple[str, str], str]:
    """Return the share of the lines that have an answer, by namespace and name of the Job of a batch that runs.

    Each shard prints the sum of all shards, so one log is enough; the largest sum is the newest.

    Args:
        cluster: has the logs. What the user may not read is left out.
        pods: the pods; of other Jobs nothing is read.
    """
    running = [(pod, name) for pod in pods if (name := _container(pod))]
    if not running:
        return {}
    with ThreadPoolExecutor(_CALLS) as pool:
        found = list(pool.map(lambda each: _counts(cluster, *each), running))
    newest: dict[tuple[str, str], tuple[int, int]] = {}
    for (pod, _), counts in zip(running, found, strict=True):
        metadata = mapping(pod.get("metadata"))
        job = text(metadata.get("namespace")), text(mapping(metadata.get("labels")).get(_JOB))
        if counts is not None:
            newest[job] = max(counts, newest.get(job, counts))
    return {job: f"{100 * done // lines}% ({done} of {lines} lines)" for job, (done, lines) in newest.items()}


def _container(pod: Object) -> str:
    """Return the name of the container of a pod that runs a batch; empty if none does."""
    statuses = [status for _, status in entries(mapping(pod.get("status")).get("containerStatuses"))]
    running = {text(each.get("name")) for each in statuses if "running" in mapping(each.get("state"))}
    for _, container in entries(mapping(pod.get("spec")).get("containers")):
        command = container.get("command")
        if isinstance(command, list) and _PROGRAM in command and text(container.get("name")) in running:
            return text(container.get("name"))
    return ""


def _counts(cluster: Cluster, pod: Manifest, container: str) -> tuple[int, int] | None:
    """Return how many lines of a batch are done, and how many there are; None if the log does not say so."""
    metadata = pod["metadata"]
    path = api_path("v1/Pod", metadata["namespace"], metadata["name"], "log")
    try:
        lines = list(cluster.stream(path, [("container", container), ("tailLines", _TAIL)], _LOG_S))
    except SystemFailure:
        return None
    found = next((match for line in reversed(lines) if (match := _LINE.match(line))), None)
    return (int(found[1]), int(found[2])) if found is not None else None
