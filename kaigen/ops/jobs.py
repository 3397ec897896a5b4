"""The Jobs of a cluster as kaigen shows them: phase, pods, events and logs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from kaigen.cluster.client import Cluster
from kaigen.cluster.clues import Clues, event_time, read_events
from kaigen.cluster.errors import ApiError
from kaigen.cluster.runs import ENDED, RunState, failure, run_state
from kaigen.cluster.waits import fetching, read_clues, retries
from kaigen.diagnostics.errors import CheckFailed
from kaigen.kubernetes.manifest import Manifest
from kaigen.kubernetes.metadata_keys import EXPIRES, FAILED_POD_TTL, POD_TTL
from kaigen.kubernetes.runs import end_of_job, time_of
from kaigen.ops.build import ARTIFACT, MODEL
from kaigen.ops.helper import CLAIM, POD, claims_of

JOB = "batch/v1/Job"
OURS = "app.kubernetes.io/managed-by=kaigen"
_APP = "app.kubernetes.io/name"
_HELPERS = "app.kubernetes.io/component notin (claim,build,upload)"
RUNS = f"{OURS},{_HELPERS}"
"""Labels of the Jobs that users asked for: not those that only make the volume or the image of another, or store its
output."""
_OF_JOB = "batch.kubernetes.io/job-name"
_EXPIRED = "ExpiredVolumeDeleted"
"""Reason of the event of kaigen-reaper about a volume."""
_WATCH_S = 300
_DOWNLOAD_S = 3
"""Seconds after which the log of a download is read again."""
_POLL_S = 1.0


def find_run(cluster: Cluster, namespace: str, name: str, job: str) -> Manifest | None:
    """Return a Job by the name of its app or its own, the newest of several runs; None if there is none.

    A Job that is being deleted does not exist, and neither do the Jobs that only make the volume or the image of
    another one: a spec in Git has them under the name of its app, too.

    Args:
        cluster: the cluster.
        namespace: its namespace.
        name: name of the app, as in `kaigen job create NAME`, or of the Job.
        job: name of the Job that a live command creates for the app.
    """
    for own in dict.fromkeys((job, name)):
        found = cluster.find(JOB, own, namespace)
        if found is not None and _is_there(found):
            return found
    runs = [each for each in cluster.objects(JOB, namespace, f"{_APP}={name},{RUNS}") if _is_there(each)]
    return max(runs, key=lambda item: str(item["metadata"]["creationTimestamp"]), default=None)


def _is_there(obj: Manifest) -> bool:
    return "deletionTimestamp" not in obj["metadata"]


def pods_of(cluster: Cluster, job: Manifest) -> list[Manifest]:
    """Return the pods of a Job, oldest first."""
    metadata = job["metadata"]
    found = cluster.objects(POD, metadata["namespace"], f"{_OF_JOB}={metadata['name']}")
    return sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


class JobRow(Struct, frozen=True):
    """A Job as a row of a table.

    Attributes:
        name: name of the app.
        namespace: its namespace.
        job: name of the Job.
        state: what it does.
        gpu: number of GPUs of a pod.
        model: the model that it runs; may be empty.
        image: image of its container.
        claims: volumes that it mounts.
        artifact: path of its result; may be empty.
        created: when it was created.
        started: when it started; None before that.
        finished: when it ended; None before that.
    """

    name: str
    namespace: str
    job: str
    state: RunState
    gpu: str
    model: str
    image: str
    claims: tuple[str, ...]
    artifact: str
    created: datetime | None
    started: datetime | None
    finished: datetime | None


def state_of(cluster: Cluster, job: Manifest, pods: Sequence[Manifest]) -> RunState:
    """Return what a Job does, and of one that waits, what it waits for.

    Args:
        cluster: has events and volumes, which say what is missing.
        job: the Job.
        pods: its pods, oldest first.
    """
    state = run_state(job, pods)
    active = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in ENDED]
    if state.phase == "Running":
        return run_state(job, pods, Clues(lines=retries(cluster, active[-1:])))
    if state.phase != "Pending":
        return state
    return run_state(job, pods, read_clues(cluster, active[-1] if active else job))


def row_of(job: Manifest, state: RunState | None = None) -> JobRow:
    """Return a Job as a row of a table.

    Args:
        job: the Job.
        state: what it does; None for what its own status says.
    """
    metadata, template = job["metadata"], job["spec"]["template"]
    container = (template["spec"].get("containers") or [{}])[0]
    annotations = metadata.get("annotations") or {}
    end = end_of_job(job)
    return JobRow(
        name=(metadata.get("labels") or {}).get(_APP, metadata["name"]),
        namespace=metadata["namespace"],
        job=metadata["name"],
        state=state or run_state(job),
        gpu=_gpus(container),
        model=annotations.get(MODEL, ""),
        image=container.get("image", ""),
        claims=tuple(sorted(claims_of(template))),
        artifact=artifact_of(job),
        created=time_of(metadata.get("creationTimestamp")),
        started=time_of((job.get("status") or {}).get("startTime")),
        finished=end[0] if end else None,
    )


def artifact_of(job: Manifest) -> str:
    """Return the path of the result in the container: of its annotation, or of its argument `--output`; else empty."""
    annotations = job["metadata"].get("annotations") or {}
    if ARTIFACT in annotations:
        return str(annotations[ARTIFACT])
    container = (job["spec"]["template"]["spec"].get("containers") or [{}])[0]
    words = [str(word) for word in container.get("args") or ()]
    for number, word in enumerate(words):
        name, joined, value = word.partition("=")
        if name == "--output":
            return value if joined else next(iter(words[number + 1 :]), "")
    return ""


def _gpus(container: Mapping[str, object]) -> str:
    resources = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    return next((str(value) for key, value in (limits or {}).items() if key.endswith("/gpu")), "0")


def changes(cluster: Cluster, job: Manifest, seconds: float | None) -> Iterator[RunState]:
    """Yield each new state of a Job until it ends, is deleted, or the time is over.

    Args:
        cluster: the cluster.
        job: the Job.
        seconds: how long; None for no limit.

    Raises:
        CheckFailed: the Job was deleted.
    """
    metadata = job["metadata"]
    until = None if seconds is None else time.monotonic() + seconds
    last = None
    pods: list[Manifest] = []
    while True:
        # With a TTL of 0, kaigen-reaper may have deleted the pods before it is known that the Job failed.
        pods = pods_of(cluster, job) or [pod for pod in pods if failure([pod]) is not None]
        state = state_of(cluster, job, pods)
        if state != last:
            yield state
            last = state
        left = None if until is None else until - time.monotonic()
        if state.phase in ENDED or (left is not None and left <= 0):
            return
        _await_change(cluster, job, left, downloads=any(fetching(pod) for pod in pods))
        found = cluster.find(JOB, metadata["name"], metadata["namespace"])
        if found is None or found["metadata"]["uid"] != metadata["uid"]:
            raise CheckFailed(f"Job {metadata['name']} was deleted")
        job = found


def pods_expire(job: Manifest) -> bool:
    """Return whether the pods of a Job that failed are deleted at once."""
    annotations = job["metadata"].get("annotations") or {}
    return annotations.get(FAILED_POD_TTL, annotations.get(POD_TTL)) == "0"


def expiry_of_pods(job: Manifest) -> str:
    """Return why a Job that has ended has no pods, as a sentence."""
    name, end = job["metadata"]["name"], end_of_job(job)
    annotations = job["metadata"].get("annotations") or {}
    ttl = annotations.get(POD_TTL, "")
    if end is not None and end[1]:
        ttl = annotations.get(FAILED_POD_TTL, ttl)
    if end is None or not ttl.isdecimal():
        return f"Job {name} has no pods any more"
    return f"the pods of Job {name} expired at {_utc(end[0] + timedelta(seconds=int(ttl)))}"


def expiry_of_volume(cluster: Cluster, namespace: str, claim: str) -> str:
    """Return that kaigen-reaper deleted a volume, as a sentence; empty if no event says so."""
    found = [event for event in read_events(cluster, namespace, [claim]) if event.get("reason") == _EXPIRED]
    moment = time_of(max(map(event_time, found))) if found else None
    return f"PersistentVolumeClaim {claim} expired, and was deleted at {_utc(moment)}" if moment else ""


def lost_volume(cluster: Cluster, job: Manifest, claim: str) -> str:
    """Return that the volume of a Job that has ended is gone, as a sentence; empty if there is no reason to say so."""
    end, labels = end_of_job(job), job["metadata"].get("labels") or {}
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    if end is None or labels.get(EXPIRES) != "true" or cluster.find(CLAIM, claim, namespace) is not None:
        return ""
    return f"PersistentVolumeClaim {claim} is gone: it may have expired, as Job {name} ended at {_utc(end[0])}"


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _await_change(cluster: Cluster, job: Manifest, left: float | None, *, downloads: bool) -> None:
    """Wait for a change of a Job, or a while: what its pods wait for, or fail to download, is not a change of the Job.

    Args:
        cluster: the cluster.
        job: the Job.
        left: seconds that may pass; None for no limit.
        downloads: whether one of its pods downloads.
    """
    metadata = job["metadata"]
    seconds = _DOWNLOAD_S if downloads else _WATCH_S
    seconds = seconds if (job.get("status") or {}).get("ready") else 1
    seconds = max(1, int(seconds if left is None else min(seconds, left)))
    try:
        for kind, _ in cluster.watch(
            JOB, metadata["namespace"], metadata["name"], metadata["resourceVersion"], seconds
        ):
            if kind != "BOOKMARK":
                return
    except ApiError as error:
        if error.code != 410:
            raise
        time.sleep(_POLL_S)


def events(cluster: Cluster, job: Manifest) -> list[Manifest]:
    """Return the events of a Job, its pods and its volumes, oldest first."""
    metadata = job["metadata"]
    name, claims = metadata["name"], claims_of(job["spec"]["template"])
    pods = {pod["metadata"]["name"] for pod in pods_of(cluster, job)}

    def is_ours(event: Manifest) -> bool:
        about = event.get("involvedObject") or {}
        named = about.get("name", "")
        match about.get("kind"):
            case "Job":
                return bool(about.get("uid") == metadata["uid"])
            case "Pod":  # those that were deleted have events for a while
                return named in pods or named.rpartition("-")[0] == name
            case "PersistentVolumeClaim":
                return named in claims
        return False

    found = [event for event in cluster.objects("v1/Event", metadata["namespace"]) if is_ours(event)]
    return sorted(found, key=event_time)
