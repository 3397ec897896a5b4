"""How long runs to completion may take, when their volumes expire, and what keeps them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import Object, entries, mapping, text, type_of
from kaigen.kubernetes.metadata_keys import EXPIRES_AT, FAILED_TTL, RUN, TTL


def run_seconds(obj: Object) -> int | None:
    """Return the longest duration of a run in seconds; 0 without a limit, None for any other object.

    A TrainJob and its TrainingRuntime both have one.
    """
    spec = mapping(obj.get("spec"))
    match type_of(obj):
        case "Job.batch":
            return _seconds(spec)
        case "TrainJob.trainer.kubeflow.org":
            return _seconds(spec)
        case "JobSet.jobset.x-k8s.io" | "TrainingRuntime.trainer.kubeflow.org":
            spec, _ = job_set_spec(obj)
            restarts = mapping(spec.get("failurePolicy")).get("maxRestarts")
            attempts = 1 + (restarts if isinstance(restarts, int) else 0)
            jobs = [
                _seconds(mapping(mapping(job.get("template")).get("spec")))
                for _, job in entries(spec.get("replicatedJobs"))
            ]
            return attempts * max(jobs) if jobs and all(jobs) else 0
    return None


def job_set_spec(obj: Object) -> tuple[Object, FieldPath]:
    """Return the spec of a JobSet, or of the one in a TrainingRuntime, and its place."""
    spec = mapping(obj.get("spec"))
    if obj.get("kind") != "TrainingRuntime":
        return spec, ("spec",)
    return mapping(mapping(spec.get("template")).get("spec")), ("spec", "template", "spec")


def _seconds(job_spec: Object) -> int:
    deadline = job_spec.get("activeDeadlineSeconds")
    return deadline if isinstance(deadline, int) else 0


NEVER = "never"

_TRACKING = "argocd.argoproj.io/tracking-id"
_KUSTOMIZATION = "kustomize.toolkit.fluxcd.io/name"


def tracked_by(obj: Object) -> str:
    """Return the syncer that manages an object; empty for none."""
    metadata = mapping(obj.get("metadata"))
    labels, annotations = mapping(metadata.get("labels")), mapping(metadata.get("annotations"))
    if _TRACKING in annotations:
        return "Argo CD"
    return "Flux" if _KUSTOMIZATION in labels or _KUSTOMIZATION in annotations else ""


def end_of_job(job: Object) -> tuple[datetime, bool] | None:
    """Return when a Job ended and whether it failed; None while it has not ended."""
    condition = end_of(job)
    moment = time_of(condition.get("lastTransitionTime")) if condition is not None else None
    return (moment, condition["type"] == "Failed") if condition is not None and moment else None


def end_of(run: Object) -> Object | None:
    """Return the condition with which a run ended; None while it has not ended."""
    for _, condition in entries(mapping(run.get("status")).get("conditions")):
        if condition.get("type") in ("Complete", "Completed", "Failed") and condition.get("status") == "True":
            return condition
    return None


def expiry(claim: Object, job: Object | None) -> datetime | str:
    """Return when a volume claim expires, or why it does not.

    Args:
        claim: a PersistentVolumeClaim.
        job: the Job that its annotation names; None if there is none.
    """
    metadata = mapping(claim.get("metadata"))
    annotations = mapping(metadata.get("annotations"))
    if EXPIRES_AT in annotations:
        moment = time_of(annotations[EXPIRES_AT])
        return moment or f"{EXPIRES_AT} is not a time"
    name = text(annotations.get(RUN))
    end = end_of_job(job) if job is not None else None
    if end is None:
        return f"Job {name} has not ended" if job is not None else f"there is no Job {name}"
    ttl = text(annotations.get(TTL))
    if end[1]:
        ttl = text(annotations.get(FAILED_TTL)) or ttl
    if ttl == NEVER:
        return "it never expires"
    return end[0] + timedelta(seconds=int(ttl)) if ttl.isdecimal() else f"{TTL} is not a number of seconds"


def time_of(value: object) -> datetime | None:
    """Return a timestamp of the API as a time; None for anything else."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
