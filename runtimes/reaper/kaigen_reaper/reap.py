"""Finds finished pods and expired volumes, and deletes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from kaigen_reaper.cluster import METADATA, Api, Expired, Json, items, pages, refused
from kaigen_reaper.contract import CONTROLLER_UID, JOB_NAME
from kaigen_reaper.decide import decide_pod, decide_volume
from kaigen_reaper.errors import ApiUnavailable
from kaigen_reaper.events import Events
from kaigen_reaper.index import JOBS, VOLUMES, Index, namespaces
from kaigen_reaper.metrics import Metrics
from kaigen_reaper.records import Job, Pod, Volume, is_ours, mounted_claims, read_job, read_pod
from kaigen_reaper.text import duration, plural, say

_FINISHED = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"
_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
_JOBS_A_LIST = 50
_VOLUMES_A_LIST = 500
_RESTARTS = 3
_GONE = 404
_CHANGED = 409

Result = Literal["deleted", "gone", "failed"]


class NotLeader(Exception):
    """Another process deletes now."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the reaper works.

    Attributes:
        dry_run: only print what would be deleted.
        rate: deletions a second, at most.
        page: objects in one page of a list.
        retry: seconds until a deletion that failed is tried again.
        recheck: seconds until an expired volume that is in use is looked at again.
    """

    dry_run: bool = False
    rate: float = 20.0
    page: int = 250
    retry: float = 30.0
    recheck: float = 60.0


@dataclass(slots=True)
class Bucket:
    """Limits the rate of deletions.

    Attributes:
        rate: a second.
        next: monotonic time of the next one.
    """

    rate: float
    next: float = field(default_factory=time.monotonic)

    def take(self) -> None:
        """Wait for the next one. After a pause, those of one second may follow at once."""
        now = time.monotonic()
        self.next = max(self.next, now - 1.0) + 1.0 / self.rate
        if self.next > now:
            time.sleep(self.next - now)


class Reaper:
    """Deletes what `decide` says. One thread uses it."""

    def __init__(
        self,
        api: Api,
        index: Index,
        options: Options,
        metrics: Metrics,
        events: Events,
        is_leader: Callable[[], bool] = lambda: True,
    ) -> None:
        self._api = api
        self._index = index
        self._options = options
        self._metrics = metrics
        self._events = events
        self._is_leader = is_leader
        self._bucket = Bucket(options.rate)

    def sweep(self, namespace: str) -> None:
        """Look at all finished pods of Jobs.

        Expired volumes have their turn after each page, because a page may take long at a limited rate.

        Args:
            namespace: empty for all.

        Raises:
            ApiUnavailable: the API server cannot be reached or refuses.
            NotLeader: another process deletes now.
        """
        query = {"labelSelector": CONTROLLER_UID, "fieldSelector": _FINISHED}
        idle = 0
        while True:
            deleted = self._metrics.value("deleted_total", kind="pod")
            try:
                for page in pages(self._api, _path("pods", namespace), query, self._options.page, METADATA):
                    self._reap_pods(read_pod(each, finished=True) for each in items(page))
                    self.reap_due_volumes()
            except Expired:
                # Deletions took longer than the API server keeps a list. What was deleted is not in the next one.
                idle = 0 if self._metrics.value("deleted_total", kind="pod") > deleted else idle + 1
                if idle == _RESTARTS:
                    raise
            else:
                self._metrics.set("last_pass_timestamp_seconds", self._api.now())
                return

    def reap_due_jobs(self) -> None:
        """Delete the finished pods of Jobs whose time has come since the last call.

        Raises:
            ApiUnavailable: the API server cannot be reached or refuses.
            NotLeader: another process deletes now.
        """
        while keys := self._index.due(self._api.now(), JOBS, _JOBS_A_LIST):
            for namespace, some in namespaces(keys):
                try:
                    self._reap_jobs(namespace, some)
                except (ApiUnavailable, NotLeader):
                    self._again(JOBS, keys, self._options.retry)
                    raise

    def _reap_jobs(self, namespace: str, keys: Iterable[str]) -> None:
        known = [job.uid for key in keys if (job := self._index.job(key)) is not None]
        if not known:
            return
        query = {"labelSelector": f"{CONTROLLER_UID} in ({','.join(known)})", "fieldSelector": _FINISHED}
        for page in pages(self._api, _path("pods", namespace), query, self._options.page, METADATA):
            self._reap_pods(read_pod(each, finished=True) for each in items(page))

    def _reap_pods(self, pods: Iterator[Pod]) -> None:
        """Judge pods, and delete those that expired."""
        deleted: dict[str, list[str]] = {}
        try:
            for pod in pods:
                key = f"{pod.namespace}/{pod.job}"
                verdict = decide_pod(pod, self._index.job(key), self._api.now())
                if not verdict.delete:
                    self._metrics.add("kept_total", kind="pod", reason=verdict.reason)
                    continue
                result = self._delete("pod", pod, verdict.due)
                if result == "deleted":
                    deleted.setdefault(key, []).append(pod.name)
                elif result == "failed":
                    self._again(JOBS, [key], self._options.retry)
        finally:
            for key, names in deleted.items():
                if (job := self._index.job(key)) is not None:
                    self._report_pods(key, job, names)

    def _report_pods(self, key: str, job: Job, names: list[str]) -> None:
        assert job.ended is not None
        how = "failed" if job.failed else "completed"
        ago = duration(self._api.now() - job.ended)
        text = f"{plural(len(names), 'finished pod')} of Job {key}, which {how} {ago} ago"
        if self._options.dry_run:
            say(f"would delete {text}")
            return
        say(f"deleted {text}")
        shown = ", ".join(islice(names, 10)) + (", …" if len(names) > 10 else "")
        self._events.write("Job", key, job.uid, "FinishedPodsDeleted", f"Deleted {text}: {shown}")

    def reap_due_volumes(self) -> None:
        """Delete the volumes whose time has come since the last call.

        Raises:
            ApiUnavailable: the API server cannot be reached or refuses.
            NotLeader: another process deletes now.
        """
        while keys := self._index.due(self._api.now(), VOLUMES, _VOLUMES_A_LIST):
            for namespace, some in namespaces(keys):
                try:
                    self._reap_volumes(namespace, some)
                except (ApiUnavailable, NotLeader):
                    self._again(VOLUMES, keys, self._options.retry)
                    raise

    def _reap_volumes(self, namespace: str, keys: Iterable[str]) -> None:
        expired = []
        for key in keys:
            volume = self._index.volume(key)
            if volume is None:
                continue
            verdict = decide_volume(volume, self._index.job_of(volume), False, self._api.now())
            if verdict.delete:
                expired.append(key)
            else:
                self._metrics.add("kept_total", kind="volume", reason=verdict.reason)
        mounted = self._mounted(namespace) if expired else set()
        for key in expired:
            if (volume := self._index.volume(key)) is not None:
                self._reap_volume(key, volume, volume.name in mounted)

    def _reap_volume(self, key: str, volume: Volume, in_use: bool) -> None:
        # A watch may be late, and a deleted volume does not come back: so the Job is read again.
        job = self._job_now(volume)
        verdict = decide_volume(volume, job, in_use, self._api.now())
        if not verdict.delete:
            self._metrics.add("kept_total", kind="volume", reason=verdict.reason)
            if verdict.due is not None:
                self._index.later(VOLUMES, key, max(verdict.due, self._api.now() + self._options.recheck))
            return
        result = self._delete("volume", volume, verdict.due)
        if result == "failed":
            self._again(VOLUMES, [key], self._options.retry)
        if result != "deleted":
            return
        assert verdict.due is not None
        text = f"PersistentVolumeClaim {key}, which expired {duration(self._api.now() - verdict.due)} ago"
        if self._options.dry_run:
            say(f"would delete {text}")
            return
        say(f"deleted {text}")
        self._events.write("PersistentVolumeClaim", key, volume.uid, "ExpiredVolumeDeleted", f"Deleted {text}")
        self._reap_holders(volume, verdict.due)

    def _reap_holders(self, volume: Volume, due: float) -> None:
        """Delete the finished pods of a Job that mount its deleted volume: Kubernetes keeps the volume for them."""
        job = self._index.job_of(volume)
        if job is None:
            return
        query = {"labelSelector": f"{JOB_NAME}={volume.job}", "fieldSelector": _FINISHED}
        for page in pages(self._api, _path("pods", volume.namespace), query, self._options.page):
            for found in items(page):
                pod = read_pod(found, finished=True)
                is_held = pod.job_uid == job.uid and volume.name in mounted_claims(found)
                if not is_held or pod.tracked or pod.deleting:
                    continue
                if self._delete("pod", pod, due) == "deleted":
                    say(f"deleted Pod {pod.namespace}/{pod.name}, which had ended and mounted {volume.name}")

    def _job_now(self, volume: Volume) -> Job | None:
        """Return the Job whose end starts the clock of a volume, as the API server has it now."""
        if volume.expires_at is not None or not volume.job:
            return None
        path = f"{_path('jobs', volume.namespace)}/{volume.job}"
        status, found = self._api.call("GET", path)
        if status not in (200, _GONE):
            raise ApiUnavailable(refused(f"get Job {volume.namespace}/{volume.job}", status, found), status)
        return read_job(found) if status == 200 and is_ours(found) else None

    def _mounted(self, namespace: str) -> set[str]:
        """Return the names of the claims that pods which have not ended mount, as they are now."""
        found: set[str] = set()
        query = {"fieldSelector": _NOT_ENDED}
        for page in pages(self._api, _path("pods", namespace), query, self._options.page):
            for pod in items(page):
                found |= mounted_claims(pod)
        return found

    def _delete(self, kind: str, record: Pod | Volume, due: float | None) -> Result:
        """Delete an object, if it is still the one that was judged. In a dry run, only pretend that."""
        self._metrics.beat()
        if self._options.dry_run:
            return "deleted"
        self._bucket.take()
        if not self._is_leader():
            raise NotLeader
        plural_name = "pods" if kind == "pod" else "persistentvolumeclaims"
        body: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": record.uid, "resourceVersion": record.version},
        }
        path = f"{_path(plural_name, record.namespace)}/{record.name}"
        status, answer = self._api.call("DELETE", path, body)
        if status in (200, 202):
            self._metrics.add("deleted_total", kind=kind)
            if due is not None:
                self._metrics.add("delay_seconds_total", max(0.0, self._api.now() - due), kind=kind)
            return "deleted"
        if status == _GONE:
            return "gone"
        if status == _CHANGED:
            self._metrics.add("kept_total", kind=kind, reason="changed")
        else:
            self._metrics.add("errors_total", what="delete")
            say(f"warning: {record.namespace}/{record.name}: {refused(f'delete {kind}', status, answer)}")
        return "failed"

    def _again(self, kind: str, keys: Iterable[str], pause: float) -> None:
        for key in keys:
            self._index.later(kind, key, self._api.now() + pause)


def _path(resource: str, namespace: str) -> str:
    prefix = "/apis/batch/v1" if resource == "jobs" else "/api/v1"
    return f"{prefix}/namespaces/{namespace}/{resource}" if namespace else f"{prefix}/{resource}"
