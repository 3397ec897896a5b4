"""What the reaper remembers of Jobs, pods and volumes: small tuples, because there may be tens of thousands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kaigen_reaper import contract
from kaigen_reaper.cluster import Json, mapping
from kaigen_reaper.text import parse_time

FINISHED = ("Succeeded", "Failed")


class Lifetime(NamedTuple):
    """Seconds from the end of a Job to a deletion; None for never.

    Attributes:
        completed: after the Job completed.
        failed: after it failed.
        problem: why an annotation is not valid, or empty. An invalid value counts as never.
    """

    completed: int | None
    failed: int | None
    problem: str = ""


class Job(NamedTuple):
    """A Job.

    Attributes:
        uid: its UID.
        ended: Unix time when it completed or failed, or None.
        failed: whether it failed.
        pods: lifetime of its finished pods.
    """

    uid: str
    ended: float | None
    failed: bool
    pods: Lifetime


class Pod(NamedTuple):
    """A pod.

    Attributes:
        namespace: its namespace.
        name: its name.
        uid: its UID.
        version: its resource version.
        job: name of the Job that controls it, or empty.
        job_uid: UID of that Job.
        finished: whether it has succeeded or failed.
        tracked: whether a syncer applied the pod itself.
        deleting: whether it is being deleted.
    """

    namespace: str
    name: str
    uid: str
    version: str
    job: str
    job_uid: str
    finished: bool
    tracked: bool
    deleting: bool


class Volume(NamedTuple):
    """A PersistentVolumeClaim.

    Attributes:
        namespace: its namespace.
        name: its name.
        uid: its UID.
        version: its resource version.
        job: name of the Job whose end starts the clock, or empty.
        lifetime: seconds from that end.
        expires_at: Unix time at which it expires, in place of Job and lifetime.
        tracked: whether a syncer applied it.
        deleting: whether it is being deleted.
    """

    namespace: str
    name: str
    uid: str
    version: str
    job: str
    lifetime: Lifetime
    expires_at: float | None
    tracked: bool
    deleting: bool


_NEVER = Lifetime(None, None)
_lifetimes: dict[Lifetime, Lifetime] = {}


def key_of(obj: Json) -> str:
    """Return namespace and name of an object as one text."""
    metadata = mapping(obj.get("metadata"))
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


def is_ours(obj: Json) -> bool:
    """Return whether a Job or volume has the label of those that expire."""
    return _texts(mapping(obj.get("metadata")).get("labels")).get(contract.EXPIRES) == "true"


def read_job(obj: Json) -> Job:
    """Return the record of a Job."""
    metadata = mapping(obj.get("metadata"))
    ended, failed = _end(mapping(obj.get("status")))
    annotations = _texts(metadata.get("annotations"))
    return Job(
        str(metadata.get("uid")), ended, failed, _lifetime(annotations, contract.POD_TTL, contract.FAILED_POD_TTL)
    )


def read_pod(obj: Json, *, finished: bool | None = None) -> Pod:
    """Return the record of a pod.

    Args:
        obj: the pod, or only its metadata.
        finished: whether it has ended, if the object has only metadata.
    """
    metadata = mapping(obj.get("metadata"))
    job, job_uid = _controlling_job(metadata.get("ownerReferences"))
    if finished is None:
        finished = mapping(obj.get("status")).get("phase") in FINISHED
    return Pod(
        str(metadata.get("namespace")),
        str(metadata.get("name")),
        str(metadata.get("uid")),
        str(metadata.get("resourceVersion")),
        job,
        job_uid,
        finished,
        _is_tracked(metadata),
        "deletionTimestamp" in metadata,
    )


def read_volume(obj: Json) -> Volume:
    """Return the record of a PersistentVolumeClaim."""
    metadata = mapping(obj.get("metadata"))
    annotations = _texts(metadata.get("annotations"))
    expires_at, lifetime = None, _NEVER
    if text := annotations.get(contract.EXPIRES_AT):
        try:
            expires_at = parse_time(text)
        except ValueError:
            lifetime = _shared(Lifetime(None, None, f"{contract.EXPIRES_AT}: not a time in RFC 3339: {text!r}"))
    else:
        lifetime = _lifetime(annotations, contract.TTL, contract.FAILED_TTL)
    return Volume(
        str(metadata.get("namespace")),
        str(metadata.get("name")),
        str(metadata.get("uid")),
        str(metadata.get("resourceVersion")),
        annotations.get(contract.JOB, ""),
        lifetime,
        expires_at,
        _is_tracked(metadata),
        "deletionTimestamp" in metadata,
    )


def mounted_claims(obj: Json) -> set[str]:
    """Return the names of the claims that a pod mounts, including those of its ephemeral volumes."""
    volumes = mapping(obj.get("spec")).get("volumes")
    name = mapping(obj.get("metadata")).get("name")
    found = set()
    for volume in map(mapping, volumes if isinstance(volumes, list) else []):
        if claim := mapping(volume.get("persistentVolumeClaim")).get("claimName"):
            found.add(str(claim))
        if "ephemeral" in volume:
            found.add(f"{name}-{volume.get('name')}")
    return found


def _end(status: Json) -> tuple[float | None, bool]:
    """Return when a Job ended, and whether it failed."""
    conditions = status.get("conditions")
    for condition in map(mapping, conditions if isinstance(conditions, list) else []):
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            try:
                return parse_time(str(condition.get("lastTransitionTime"))), condition["type"] == "Failed"
            except ValueError:
                return None, False
    return None, False


def _lifetime(annotations: Mapping[str, str], completed: str, failed: str) -> Lifetime:
    try:
        usual = _seconds(completed, annotations.get(completed, "never"))
        return _shared(Lifetime(usual, _seconds(failed, annotations[failed]) if failed in annotations else usual))
    except ValueError as error:
        return _shared(Lifetime(None, None, str(error)))


def _shared(lifetime: Lifetime) -> Lifetime:
    """Return one object for equal lifetimes: most Jobs have the same."""
    if len(_lifetimes) > 1000:
        _lifetimes.clear()
    return _lifetimes.setdefault(lifetime, lifetime)


def _seconds(name: str, text: str) -> int | None:
    if text == "never":
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise ValueError(f"{name}: not a number of seconds, and not `never`: {text[:40]!r}")
    return int(text)


def _controlling_job(owners: object) -> tuple[str, str]:
    """Return name and UID of the Job that controls a pod, or two empty texts."""
    for owner in map(mapping, owners if isinstance(owners, list) else []):
        if owner.get("controller") is True:
            group = str(owner.get("apiVersion")).partition("/")[0]
            if owner.get("kind") == "Job" and group == "batch":
                return str(owner.get("name")), str(owner.get("uid"))
    return "", ""


def _is_tracked(metadata: Json) -> bool:
    return contract.is_tracked(_texts(metadata.get("labels")), _texts(metadata.get("annotations")))


def _texts(value: object) -> Mapping[str, str]:
    return {key: str(text) for key, text in mapping(value).items()}
