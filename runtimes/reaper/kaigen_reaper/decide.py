"""What is deleted, and when. Pure functions of what the cluster contains and of its time."""

from __future__ import annotations

from typing import NamedTuple

from kaigen_reaper.records import Job, Lifetime, Pod, Volume


class Verdict(NamedTuple):
    """A decision.

    Attributes:
        delete: whether the object is deleted now.
        reason: why, or why not: a short constant for metrics.
        due: Unix time at which it expires, if that is known.
    """

    delete: bool
    reason: str
    due: float | None = None


def decide_pod(pod: Pod, job: Job | None, now: float) -> Verdict:
    """Return whether a pod is deleted.

    Args:
        pod: the pod.
        job: the Job with the name of its controller, if it has the label of those that expire.
        now: the time of the API server.
    """
    if not pod.job_uid or job is None or job.uid != pod.job_uid:
        return Verdict(False, "not ours")
    if pod.tracked:
        return Verdict(False, "tracked")
    if pod.deleting:
        return Verdict(False, "being deleted")
    if not pod.finished:
        return Verdict(False, "in use")
    return _expiry(job, job.pods, now)


def decide_volume(volume: Volume, job: Job | None, in_use: bool, now: float) -> Verdict:
    """Return whether a volume is deleted.

    Args:
        volume: the volume, which has the label of those that expire.
        job: the Job of its annotation, if it has the label of those that expire.
        in_use: whether a pod that has not ended mounts it.
        now: the time of the API server.
    """
    if volume.tracked:
        return Verdict(False, "tracked")
    if volume.deleting:
        return Verdict(False, "being deleted")
    at = volume.expires_at
    verdict = _after(at, now) if at is not None else _expiry(job, volume.lifetime, now)
    return Verdict(False, "in use", verdict.due) if verdict.delete and in_use else verdict


def _expiry(job: Job | None, lifetime: Lifetime, now: float) -> Verdict:
    if lifetime.problem:
        return Verdict(False, "invalid")
    if job is None or job.ended is None:
        return Verdict(False, "not ended")
    ttl = lifetime.failed if job.failed else lifetime.completed
    return Verdict(False, "never") if ttl is None else _after(job.ended + ttl, now)


def _after(due: float, now: float) -> Verdict:
    return Verdict(True, "expired", due) if now >= due else Verdict(False, "not expired", due)
