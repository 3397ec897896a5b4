"""What the pods of Jobs print."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import ApiError, StreamBroken
from kaigen.cluster.runs import ENDED
from kaigen.diagnostics.errors import CheckFailed, SystemFailure
from kaigen.kubernetes.manifest import Manifest, api_path
from kaigen.kubernetes.runs import end_of_job
from kaigen.ops.helper import POD
from kaigen.ops.jobs import JOB, pods_of

SILENCE_S = 60
"""Seconds without a line after which the connection is made again: the old one may be dead."""
PATIENCE_S = 120
"""Seconds for which a server that does not answer is asked again."""
POLL_S = 1.0

_STAMP = re.compile(rb"([0-9-]{10}T[0-9:]{8})(?:\.[0-9]+)?(Z|[+-][0-9:]{5})")


def logs(
    cluster: Cluster, job: Manifest, *, follow: bool, container: str = "", tail: int | None = None
) -> Iterator[bytes]:
    """Yield the lines that the newest pod of a Job prints.

    Args:
        cluster: the cluster.
        job: the Job.
        follow: wait for the pod, and for more lines until it ends.
        container: name of the container; the main one when empty.
        tail: only so many of the last lines.

    Raises:
        CheckFailed: the Job has no pods any more.
        SystemFailure: the cluster cannot be reached, or the container has no log.
    """
    pod = _pod(cluster, job, wait=follow)
    query = [("container", container)] if container else []
    if follow:
        yield from _Follower(cluster, pod, container, tail).lines(query)
    else:
        metadata = pod["metadata"]
        query += [("tailLines", str(tail))] if tail is not None else []
        yield from cluster.stream(api_path(POD, metadata["namespace"], metadata["name"], "log"), query)


def _pod(cluster: Cluster, job: Manifest, *, wait: bool) -> Manifest:
    """Return the newest pod of a Job."""
    metadata = job["metadata"]
    while True:
        if pods := pods_of(cluster, job):
            return pods[-1]
        if not wait or end_of_job(cluster.get(JOB, metadata["name"], metadata["namespace"])):
            hint = "pods are deleted when their TTL is over; the results stay in the volume: kaigen job fetch"
            raise CheckFailed(f"Job {metadata['name']} has no pods", hint=hint)
        time.sleep(POLL_S)


class _Follower:
    """The log of a container, over as many connections as it takes.

    The server selects lines by whole seconds. Lines of standard output and standard error may be out of order by a
    little, so each connection begins a second early, and lines that were seen are skipped.
    """

    def __init__(self, cluster: Cluster, pod: Manifest, container: str, tail: int | None) -> None:
        self._cluster = cluster
        self._namespace, self._name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        self._uid = pod["metadata"]["uid"]
        self._container = container
        self._tail = tail
        self._answered = time.monotonic()
        self._asked: datetime | None = None
        """Time of the first request, by the server's clock."""
        self._begin = b""
        """Time of the first line, if only the last lines are wanted."""
        self._seen: dict[datetime, Counter[bytes]] = {}
        """Digests of the lines of the last seconds."""

    def lines(self, query: list[tuple[str, str]]) -> Iterator[bytes]:
        """Yield the lines until the container has ended and all were read, or the pod is gone."""
        while True:
            try:
                pod = self._cluster.find(POD, self._name, self._namespace)
                if pod is None or pod["metadata"]["uid"] != self._uid:
                    return
                has_ended = _has_ended(pod, self._container)
                yield from self._new(query)
                if has_ended:
                    return
            except StreamBroken:
                self._answered = time.monotonic()
            except SystemFailure as error:
                self._check(error)
            time.sleep(POLL_S)

    def _new(self, query: list[tuple[str, str]]) -> Iterator[bytes]:
        """Yield the lines of one connection that were not seen yet."""
        begun = bool(self._seen)
        query = [*query, *self._selection(), ("follow", "true"), ("timestamps", "true")]
        known: Counter[bytes] = sum(self._seen.values(), Counter())
        path = api_path(POD, self._namespace, self._name, "log")
        for line in self._cluster.stream(path, query, SILENCE_S):
            self._answered = time.monotonic()
            digest = blake2b(line, digest_size=16).digest()
            if known[digest]:
                known[digest] -= 1
                continue
            stamp, _, text = line.partition(b" ")
            second = _second(stamp)
            if second is None:
                yield line
                continue
            if begun and stamp < self._begin:
                continue
            if self._tail is not None and not self._begin:
                self._begin = stamp
            self._remember(second, digest)
            yield text
        self._answered = time.monotonic()

    def _selection(self) -> list[tuple[str, str]]:
        """Return the parameters for the lines that are still wanted."""
        since = min(self._seen) if self._seen else self._asked if self._tail is not None else None
        self._asked = self._asked or self._cluster.clock
        if since is not None:
            return [("sinceTime", since.strftime("%Y-%m-%dT%H:%M:%SZ"))]
        return [] if self._tail is None else [("tailLines", str(self._tail))]

    def _remember(self, second: datetime, digest: bytes) -> None:
        if second not in self._seen:
            oldest = max((second, *self._seen)) - timedelta(seconds=1)
            self._seen = {each: lines for each, lines in self._seen.items() if each >= oldest}
            self._seen[second] = Counter()
        self._seen[second][digest] += 1

    def _check(self, error: SystemFailure) -> None:
        """Raise an error that does not go away by waiting."""
        if isinstance(error, ApiError) and error.code < 500:
            if not (error.code == 400 and "waiting to start" in str(error)):
                raise error
            self._answered = time.monotonic()
        if time.monotonic() - self._answered > PATIENCE_S:
            raise error


def _second(stamp: bytes) -> datetime | None:
    """Return the second of a line's time; None for a line without a time."""
    found = _STAMP.fullmatch(stamp)
    return datetime.fromisoformat((found[1] + found[2]).decode()).astimezone(UTC) if found else None


def _has_ended(pod: Manifest, container: str) -> bool:
    """Return whether a container prints no more."""
    status = pod.get("status") or {}
    if status.get("phase") in ENDED:
        return True
    if pod["spec"].get("restartPolicy") != "Never":
        return False
    states = status.get("containerStatuses") or []
    if container:
        states = [each for each in (*states, *(status.get("initContainerStatuses") or [])) if each["name"] == container]
    return bool(states) and "terminated" in (states[0].get("state") or {})
