"""The Jobs and volumes that the reaper knows, and when to look at each of them again."""

from __future__ import annotations

import heapq
import sys
import threading
from collections.abc import Iterable, Iterator

from kaigen_reaper.cluster import Json
from kaigen_reaper.decide import decide_volume
from kaigen_reaper.records import Job, Volume, is_ours, key_of, read_job, read_volume
from kaigen_reaper.text import say

JOBS = "jobs"
VOLUMES = "volumes"


class Index:
    """Jobs and volumes by namespace and name. Threads that watch fill it, one thread reads it.

    Pods are not in it: a pod is judged by its Job, and a finished Job has no new pods. So memory grows with the Jobs
    and volumes that expire, and not with the pods.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._volumes: dict[str, Volume] = {}
        self._volumes_of: dict[str, set[str]] = {}
        self._agenda: dict[str, list[tuple[float, str]]] = {JOBS: [], VOLUMES: []}
        self._changed = threading.Condition()
        self._warned: set[str] = set()

    def __len__(self) -> int:
        return len(self._jobs) + len(self._volumes)

    def count(self, kind: str) -> int:
        """Return the number of Jobs or volumes."""
        return len(self._jobs if kind == JOBS else self._volumes)

    def job(self, key: str) -> Job | None:
        """Return a Job by namespace and name."""
        return self._jobs.get(key)

    def volume(self, key: str) -> Volume | None:
        """Return a volume by namespace and name."""
        return self._volumes.get(key)

    def set(self, kind: str, obj: Json) -> str:
        """Note a Job or volume as it is now, and return its namespace and name."""
        key = sys.intern(key_of(obj))
        if not is_ours(obj):
            self.remove(kind, key)
        elif kind == JOBS:
            self._set_job(key, read_job(obj))
        else:
            self._set_volume(key, read_volume(obj))
        return key

    def remove(self, kind: str, key: str) -> None:
        """Forget a Job or volume."""
        with self._changed:
            if kind == JOBS:
                self._jobs.pop(key, None)
            elif (old := self._volumes.pop(key, None)) is not None:
                self._unlink(key, old)

    def keep_only(self, kind: str, namespace: str, keys: Iterable[str]) -> None:
        """Forget the Jobs or volumes that a complete list does not contain.

        Args:
            kind: `jobs` or `volumes`.
            namespace: the list's, or empty for all.
            keys: those in the list.
        """
        kept = set(keys)
        prefix = f"{namespace}/" if namespace else ""
        known = self._jobs if kind == JOBS else self._volumes
        with self._changed:
            gone = [key for key in known if key.startswith(prefix) and key not in kept]
        for key in gone:
            self.remove(kind, key)

    def later(self, kind: str, key: str, when: float) -> None:
        """Look at a Job or volume at a time of the API server."""
        with self._changed:
            heapq.heappush(self._agenda[kind], (when, key))
            self._changed.notify_all()

    def due(self, now: float, kind: str, most: int) -> list[str]:
        """Return the Jobs or volumes whose time has come, each once, and take them off the agenda."""
        found: dict[str, None] = {}
        with self._changed:
            agenda = self._agenda[kind]
            while agenda and agenda[0][0] <= now and len(found) < most:
                found[heapq.heappop(agenda)[1]] = None
        return list(found)

    def next_due(self) -> float | None:
        """Return the time of the next entry of the agenda."""
        with self._changed:
            return min((agenda[0][0] for agenda in self._agenda.values() if agenda), default=None)

    def wait(self, seconds: float) -> None:
        """Wait for a change of the agenda, at most for so long."""
        with self._changed:
            self._changed.wait(max(0.0, seconds))

    def wake(self) -> None:
        """End `wait`."""
        with self._changed:
            self._changed.notify_all()

    def _set_job(self, key: str, job: Job) -> None:
        self._warn(f"Job {key}", job.pods.problem)
        with self._changed:
            old = self._jobs.get(key)
            self._jobs[key] = job
            if job.ended is None or job == old:
                return
            ttl = job.pods.failed if job.failed else job.pods.completed
            if ttl is not None:
                heapq.heappush(self._agenda[JOBS], (job.ended + ttl, key))
            for volume in self._volumes_of.get(key, ()):
                self._schedule_volume(volume)
            self._changed.notify_all()

    def _set_volume(self, key: str, volume: Volume) -> None:
        self._warn(f"PersistentVolumeClaim {key}", volume.lifetime.problem)
        with self._changed:
            if (old := self._volumes.get(key)) is not None:
                self._unlink(key, old)
            self._volumes[key] = volume
            if volume.job:
                self._volumes_of.setdefault(f"{volume.namespace}/{volume.job}", set()).add(key)
            self._schedule_volume(key)
            self._changed.notify_all()

    def _schedule_volume(self, key: str) -> None:
        volume = self._volumes[key]
        verdict = decide_volume(volume, self.job_of(volume), False, now=0)
        if verdict.due is not None:
            heapq.heappush(self._agenda[VOLUMES], (verdict.due, key))

    def job_of(self, volume: Volume) -> Job | None:
        """Return the Job whose end starts the clock of a volume."""
        return self._jobs.get(f"{volume.namespace}/{volume.job}") if volume.job else None

    def _unlink(self, key: str, volume: Volume) -> None:
        name = f"{volume.namespace}/{volume.job}"
        if volumes := self._volumes_of.get(name):
            volumes.discard(key)
            if not volumes:
                del self._volumes_of[name]

    def _warn(self, what: str, problem: str) -> None:
        message = f"warning: {what} is kept: {problem}"
        if problem and message not in self._warned:
            self._warned.add(message)
            say(message)


def namespaces(keys: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield namespaces, each with its keys."""
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(key.partition("/")[0], []).append(key)
    yield from found.items()
