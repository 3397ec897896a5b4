"""Volumes whose lifetime is over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from kaigen.cluster.client import Cluster
from kaigen.cluster.runs import ENDED
from kaigen.kubernetes.manifest import Manifest
from kaigen.kubernetes.metadata_keys import EXPIRES, EXPIRES_AT, RUN
from kaigen.kubernetes.runs import end_of_job, expiry, tracked_by
from kaigen.ops.helper import CLAIM, POD, claims_of
from kaigen.ops.jobs import JOB


class Decision(Struct, frozen=True):
    """What happens to a volume.

    Attributes:
        name: name of the claim.
        namespace: its namespace.
        uid: its UID.
        kept_because: why it stays; empty when it is deleted.
        ended_pods: name and UID of the pods that have ended and mount it. Kubernetes keeps a volume while they exist.
    """

    name: str
    namespace: str
    uid: str
    kept_because: str = ""
    ended_pods: tuple[tuple[str, str], ...] = ()


def decisions(cluster: Cluster, namespace: str) -> Iterator[Decision]:
    """Yield a decision for each volume that expires.

    Args:
        cluster: the cluster, whose clock counts.
        namespace: empty for all namespaces.
    """
    claims = cluster.objects(CLAIM, namespace, f"{EXPIRES}=true")
    jobs = {_key(job): job for job in cluster.objects(JOB, namespace)} if claims else {}
    used: set[tuple[str, str]] = set()
    ended: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for pod in cluster.objects(POD, namespace) if claims else ():
        has_ended = (pod.get("status") or {}).get("phase") in ENDED
        for claim_name in claims_of(pod):
            key = (pod["metadata"]["namespace"], claim_name)
            if has_ended:
                ended.setdefault(key, []).append((pod["metadata"]["name"], pod["metadata"]["uid"]))
            else:
                used.add(key)
    now = _now(cluster)
    for claim in claims:
        space, name = _key(claim)
        job = jobs.get((space, (claim["metadata"].get("annotations") or {}).get(RUN, "")))
        why = _kept_because(claim, job, now, in_use=(space, name) in used)
        yield Decision(name, space, claim["metadata"]["uid"], why, tuple(ended.get((space, name), ())))


def _key(obj: Manifest) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _kept_because(claim: Manifest, job: Manifest | None, now: datetime, *, in_use: bool) -> str:
    if syncer := tracked_by(claim):
        return f"it is managed by {syncer}"
    moment = expiry(claim, job)
    if isinstance(moment, str):
        return moment
    if moment > now:
        return f"its TTL ends at {moment:%Y-%m-%dT%H:%M:%SZ}"
    return "a pod uses it" if in_use else ""


def keep_lifetimes(cluster: Cluster, job: Manifest) -> None:
    """Note in the volumes of a Job when they expire: nothing else knows it when the Job is deleted.

    Args:
        cluster: the cluster.
        job: a Job that is about to be deleted. The time of one that has not ended begins now.
    """
    metadata = job["metadata"]
    for name in sorted(claims_of(job["spec"]["template"])):
        claim = cluster.find(CLAIM, name, metadata["namespace"])
        if claim is None or not _is_own(claim, metadata["name"]):
            continue
        end = end_of_job(job)
        moment = _expiry_after(claim, end[0] if end else _now(cluster), is_failed=bool(end and end[1]))
        if moment is not None:
            _set_expiry(cluster, claim, _stamp(moment))


def expire_from_now(cluster: Cluster, claim: Manifest) -> None:
    """Note in a new volume with a lifetime when it expires if no Job ever uses it.

    Args:
        cluster: the cluster.
        claim: the volume, which is changed.
    """
    moment = _expiry_after(claim, _now(cluster))
    if moment is not None:
        claim["metadata"]["annotations"][EXPIRES_AT] = _stamp(moment)


def expire_after_run(cluster: Cluster, name: str, namespace: str, job: str) -> None:
    """Let the time of a volume that was there before begin with the end of a new Job.

    Args:
        cluster: the cluster.
        name: name of the volume.
        namespace: its namespace.
        job: name of the Job.
    """
    claim = cluster.get(CLAIM, name, namespace)
    if EXPIRES_AT in (claim["metadata"].get("annotations") or {}) and _is_own(claim, job):
        _set_expiry(cluster, claim, None)


def _now(cluster: Cluster) -> datetime:
    return cluster.clock or datetime.now(UTC)


def _expiry_after(claim: Manifest, end: datetime, *, is_failed: bool = False) -> datetime | None:
    """Return when a volume expires that a run used to an end; None if it does not expire."""
    condition = {"type": "Failed" if is_failed else "Complete", "status": "True", "lastTransitionTime": _stamp(end)}
    moment = expiry(claim, {"status": {"conditions": [condition]}})
    return moment if isinstance(moment, datetime) else None


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _set_expiry(cluster: Cluster, claim: Manifest, stamp: str | None) -> None:
    metadata = claim["metadata"]
    change = {"metadata": {"annotations": {EXPIRES_AT: stamp}}}
    cluster.patch(CLAIM, metadata["name"], metadata["namespace"], change)


def _is_own(claim: Manifest, job: str) -> bool:
    """Return whether a volume with a lifetime was created for a Job by a live command."""
    metadata = claim["metadata"]
    is_named = (metadata.get("annotations") or {}).get(RUN) == job
    return is_named and EXPIRES in (metadata.get("labels") or {}) and not tracked_by(claim)


def delete(cluster: Cluster, item: Decision) -> None:
    """Delete a volume and the pods that have ended and mount it, unless another one has taken its name."""
    if cluster.delete(CLAIM, item.name, item.namespace, uid=item.uid):
        for name, uid in item.ended_pods:
            cluster.delete(POD, name, item.namespace, uid=uid)
