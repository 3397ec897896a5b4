"""How long a run to completion may take."""

from __future__ import annotations

from kaigen.kubernetes.manifest import Object, entries, mapping, type_of


def run_seconds(obj: Object) -> int | None:
    """Return the longest duration of a Job or JobSet in seconds; 0 without a limit, None for any other object."""
    spec = mapping(obj.get("spec"))
    match type_of(obj):
        case "Job.batch":
            return _seconds(spec)
        case "JobSet.jobset.x-k8s.io":
            restarts = mapping(spec.get("failurePolicy")).get("maxRestarts")
            attempts = 1 + (restarts if isinstance(restarts, int) else 0)
            jobs = [
                _seconds(mapping(mapping(job.get("template")).get("spec")))
                for _, job in entries(spec.get("replicatedJobs"))
            ]
            return attempts * max(jobs) if jobs and all(jobs) else 0
    return None


def _seconds(job_spec: Object) -> int:
    deadline = job_spec.get("activeDeadlineSeconds")
    return deadline if isinstance(deadline, int) else 0
