"""Volumes whose lifetime is over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from kaigen.cluster.client import Cluster
from kaigen.cluster.runs import ENDED
from kaigen.kubernetes.manifest import Manifest
from kaigen.kubernetes.metadata_keys import EXPIRES, RUN
from kaigen.kubernetes.runs import expiry, tracked_by
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
    now = cluster.clock or datetime.now(UTC)
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


def delete(cluster: Cluster, item: Decision) -> None:
    """Delete a volume and the pods that have ended and mount it, unless another one has taken its name."""
    if cluster.delete(CLAIM, item.name, item.namespace, uid=item.uid):
        for name, uid in item.ended_pods:
            cluster.delete(POD, name, item.namespace, uid=uid)
