"""`wait-job`: blocks until a Job, JobSet or TrainJob has completed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from kaigen_downloader.cluster import Api, ApiUnavailable, Json, refused
from kaigen_downloader.errors import BadInput, JobFailed, Unavailable
from kaigen_downloader.polling import Polling
from kaigen_downloader.text import plural, say

_ABSENT = "does not exist yet"
_AGAIN = ", then change its spec, which starts a new run, or delete the {}, so that it runs again"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects that run to completion.

    Attributes:
        name: as in `JobSet`.
        path: API group and version.
        plural: its name in URLs.
        complete: the condition of a run that succeeded.
        pods: the label of its pods with its name.
    """

    name: str
    path: str
    plural: str
    complete: str
    pods: str


KINDS = {
    kind.name: kind
    for kind in (
        Kind("Job", "batch/v1", "jobs", "Complete", "batch.kubernetes.io/job-name"),
        Kind(
            "TrainJob",
            "trainer.kubeflow.org/v1alpha1",
            "trainjobs",
            "Complete",
            "jobset.sigs.k8s.io/jobset-name",
        ),
        Kind("JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", "Completed", "jobset.sigs.k8s.io/jobset-name"),
    )
}


def wait_job(kind: Kind, name: str, env: Mapping[str, str], polling: Polling) -> None:
    """Block until a Job, JobSet or TrainJob of the pod's namespace has completed.

    Whatever the API server answers, and while it does not answer, the wait goes on: the object may be created later,
    and so may the permission to read it.

    Args:
        kind: its kind.
        name: its name.
        env: `KUBERNETES_SERVICE_HOST` and `_PORT`, `KAIGEN_SA_DIR`.
        polling: how long and how often to ask.

    Raises:
        JobFailed: it has failed.
        Unavailable: the time is over, or the pod has no token.
    """
    try:
        api = Api(env)
    except ApiUnavailable as error:
        raise Unavailable(str(error)) from None
    say(f"ready: {polling.wait(lambda: _look(api, kind, name))}")


def run_at(schedule: str, own: str) -> str:
    """Return the name of the Job that a CronJob starts at the same time as another one started a Job.

    The name of such a Job ends in the minute at which it was due (source: k8s.io/kubernetes, pkg/controller/cronjob).

    Args:
        schedule: name of the CronJob.
        own: name of the other Job.

    Raises:
        BadInput: it is not the name of such a Job.
    """
    start, dash, minute = own.rpartition("-")
    if not (start and dash and minute):
        raise BadInput(f"JOB_NAME is not the name of a Job that a CronJob started: {own!r}")
    return f"{schedule}-{minute}"


def wait_run(name: str, left_out: float, env: Mapping[str, str], polling: Polling) -> bool:
    """Block until a run of a schedule has completed.

    Args:
        name: name of its Job.
        left_out: seconds after which a Job that does not exist is never started.
        env: as of `wait_job`.
        polling: how long and how often to ask.

    Returns:
        Whether it has completed. Otherwise it was left out, because the last one still ran, or it was deleted.

    Raises:
        JobFailed: it has failed.
        Unavailable: the time is over, or the pod has no token.
    """
    try:
        api = Api(env)
    except ApiUnavailable as error:
        raise Unavailable(str(error)) from None
    kind = KINDS["Job"]
    what = f"Job {api.namespace}/{name}"
    seen = time.monotonic()

    def look() -> tuple[bool | None, str]:
        nonlocal seen
        done, sight = _look(api, kind, name, again="")
        if not sight.endswith(_ABSENT):
            seen = time.monotonic()
        elif time.monotonic() - seen >= left_out:
            return False, sight
        return (True if done is not None else None), sight

    completed = polling.wait(look)
    say(f"ready: {what} has completed" if completed else f"{what} was left out or deleted: nothing to store")
    return completed


def _look(api: Api, kind: Kind, name: str, again: str = _AGAIN) -> tuple[str | None, str]:
    """Return what has completed, or None and a description of its state.

    Args:
        api: the API server.
        kind: kind of the object.
        name: its name.
        again: how a failed one runs again.

    Raises:
        JobFailed: it has failed.
    """
    what = f"{kind.name} {api.namespace}/{name}"
    try:
        status, found = api.call("GET", f"/apis/{kind.path}/namespaces/{api.namespace}/{kind.plural}/{name}")
    except ApiUnavailable as error:
        return None, f"the API server cannot be reached; a NetworkPolicy may deny it ({error})"
    if status == 404:
        # The answer for a kind that the cluster does not have names no object.
        if _mapping(found.get("details")).get("name") == name:
            return None, f"{what} {_ABSENT}"
        return None, f"the cluster has no {kind.name} of {kind.path}: install its controller"
    if status != 200:
        newer = " (a newer version of the app may wait for another run)" if status == 403 else ""
        return None, f"{what}: {refused('get', status, found)}{newer}"
    if "deletionTimestamp" in _mapping(found.get("metadata")):
        return None, f"{what} is being deleted"
    state = _mapping(found.get("status"))
    for condition in _conditions(state):
        if condition.get("type") == kind.complete:
            return f"{what} has completed", ""
        if condition.get("type") == "Failed":
            reason = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
            raise JobFailed(
                f"{what} failed ({reason or 'no reason is given'}); read `kubectl logs -n {api.namespace} "
                f"-l {kind.pods}={name}`{again.format(kind.name)}"
            )
    if _mapping(found.get("spec")).get("suspend") is True:
        return None, f"{what} is suspended; it may be in a queue"
    return None, f"{what} has not completed{_progress(state)}"


def _conditions(state: Json) -> list[Json]:
    """Return the conditions that are true."""
    found = state.get("conditions")
    entries = [_mapping(entry) for entry in found] if isinstance(found, list) else []
    return [entry for entry in entries if entry.get("status") == "True"]


def _progress(state: Json) -> str:
    """Return the counts in the status of a Job or JobSet, such as `: 1 active pod, none is ready, 2 failed pods`."""
    texts = []
    if isinstance(active := state.get("active"), int) and active:
        texts.append(plural(active, "active pod"))
        # The pods that wait for the Job may occupy the GPUs that it needs.
        texts += ["none is ready"] if not state.get("ready") else []
    if isinstance(failed := state.get("failed"), int) and failed:
        texts.append(plural(failed, "failed pod"))
    if isinstance(restarts := state.get("restarts"), int) and restarts:
        texts.append(plural(restarts, "restart"))
    return f": {', '.join(texts)}" if texts else ""


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}
