"""A Job with a schedule: the CronJob that starts its runs, and what such a Job cannot have."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.jobs import Run, limited_spec, seconds
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.field_expressions import Entries
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.job import Inputs, JobSpec, ModelUse
from kaigen.kinds.schedule import KeptRuns, Schedule

RUN_NAME = "JOB_NAME"
"""Variable with the name of the run, which is that of its folder in the output."""

_AT: FieldPath = ("spec", "schedule")
_WITHOUT_SCHEDULE = {"jobSet": "JobSet", "trainJob": "TrainJob"}


def schedule_of(spec: JobSpec) -> Schedule | None:
    """Return the schedule of a Job; None for a Job that runs once."""
    return Schedule(cron=spec.schedule) if isinstance(spec.schedule, str) else spec.schedule


def cron_job(run: Run, spec: JobSpec, *, overlaps: bool = False) -> Object | None:
    """Return the CronJob that starts a run at the times of the spec; None for a Job that runs once.

    It has the name of the app: a change is one of its template, which later runs use. Its Jobs have owners, so Argo CD
    and Flux leave them alone, and its history limits delete them.

    Args:
        run: what it runs.
        spec: the spec.
        overlaps: whether runs always overlap, whatever the spec says.
    """
    schedule = schedule_of(spec)
    if schedule is None:
        return None
    frame, times = run.frame, _times(schedule, short=isinstance(spec.schedule, str))
    template: dict[str, Tree] = {
        "metadata": {
            "labels": frame.all_labels(run.component, run.labels),
            "annotations": Entries(dict(run.annotations or {}), frame.annotations_setting),
        },
        "spec": limited_spec(run),
    }
    return Object(
        role=f"cronjob{run.suffix}",
        wave=run.wave,
        body={
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": frame.metadata(run.suffix, run.component, wave=run.wave),
            "spec": {**times, **({"concurrencyPolicy": "Allow"} if overlaps else {}), "jobTemplate": template},
        },
    )


def _times(schedule: Schedule, *, short: bool) -> Mapping[str, Tree]:
    def origin(*path: str) -> FieldPath:
        return _AT if short else (*_AT, *path)

    kept = schedule.keep
    block = kept if isinstance(kept, KeptRuns) else KeptRuns(completed=kept, failed=kept)
    by_end = isinstance(kept, KeptRuns)
    return {
        "schedule": settings.text(
            "schedule.cron", schedule.cron, "When runs start, as a cron expression.", origin=origin("cron")
        ),
        "timeZone": settings.text(
            "schedule.timeZone", schedule.time_zone, "Time zone of `schedule.cron`.", origin=origin("timeZone")
        ),
        "concurrencyPolicy": Setting(
            "schedule.concurrency",
            schedule.concurrency,
            "What happens when a run is due and the last one still runs: Forbid, Allow or Replace.",
            {"enum": ["Forbid", "Allow", "Replace"]},
            origin=origin("concurrency"),
        ),
        "startingDeadlineSeconds": settings.count(
            "schedule.startingDeadlineSeconds",
            seconds(schedule.starting_deadline),
            "How many seconds late a run may start.",
            origin=origin("startingDeadline"),
        ),
        "successfulJobsHistoryLimit": settings.count(
            "schedule.keep.completed",
            block.completed,
            "Number of completed runs to keep.",
            origin=origin("keep", "completed") if by_end else origin("keep"),
        ),
        "failedJobsHistoryLimit": settings.count(
            "schedule.keep.failed",
            block.failed,
            "Number of failed runs to keep.",
            origin=origin("keep", "failed") if by_end else origin("keep"),
        ),
        "suspend": Setting(
            "schedule.suspend", schedule.suspend, "Start no further runs.", settings.FLAG, origin=origin("suspend")
        ),
    }


def check_schedule(spec: JobSpec, problems: Problems) -> None:
    """Report what a Job with a schedule cannot have: all of it belongs to one run."""
    if spec.schedule is None:
        return
    output, inputs, model = spec.output, spec.inputs, spec.model
    bucket, ttl = (output.bucket, output.volume.ttl) if output is not None else (None, None)
    single: list[tuple[bool, FieldPath, str, str]] = [
        (
            spec.groups in _WITHOUT_SCHEDULE,
            ("groups",),
            f"a {_WITHOUT_SCHEDULE.get(spec.groups or '')} cannot have a schedule",
            "leave it out: an Indexed Job has one",
        ),
        (
            bucket is not None and bucket.skip_if_complete,
            ("output", "bucket", "skipIfComplete"),
            "each run of a schedule has a folder of its own, so none has results already",
            "leave it out",
        ),
        (
            ttl is not None,
            ("output", "volume", "ttl"),
            "a volume that expires belongs to one run, and a schedule starts many",
            "leave it out",
        ),
        (
            isinstance(model, ModelUse) and model.source is not None,
            ("model", "source"),
            "all runs would download `model.source` to the same folder",
            "create a Model with this source, and set `model` to its name",
        ),
    ]
    uploads = enumerate(inputs.files) if isinstance(inputs, Inputs) else ()
    single += [
        (
            file.wait is not None,
            ("inputs", "files", number, "wait"),
            "nobody can upload a file to the folder of a run that has not started",
            "leave it out, and read the files from a bucket: `s3: {uri: …, newest: 1}`",
        )
        for number, file in uploads
    ]
    for is_set, path, message, hint in single:
        if is_set:
            problems.error("KG0338", message, ("spec", *path), hint)
    _check_deadline(spec, problems)


def _check_deadline(spec: JobSpec, problems: Problems) -> None:
    """Report a deadline with which the controller may never start a run.

    Source: k8s.io/kubernetes, pkg/controller/cronjob, which looks every 10 seconds for runs that are due.
    """
    schedule = schedule_of(spec)
    if schedule is not None and seconds(schedule.starting_deadline) < _CHECK_SECONDS:
        problems.error(
            "KG0338",
            f"runs may never start: Kubernetes looks for runs that are due only every {_CHECK_SECONDS} seconds",
            (*_AT, "startingDeadline"),
            "set at least `1m`",
        )


_CHECK_SECONDS = 10


def run_folder(spec: JobSpec) -> Mapping[str, Tree]:
    """Return the fields of a mount that limit a pod to the folder of its run; nothing for a Job that runs once."""
    return {} if spec.schedule is None else {"subPathExpr": f"$({RUN_NAME})"}


def run_name() -> dict[str, Tree]:
    """Return the variable with the name of the run, which is that of its folder."""
    return {"name": RUN_NAME, "valueFrom": label_value("batch.kubernetes.io/job-name")}


def label_value(name: str) -> dict[str, Tree]:
    """Return the source of a variable that is the value of a label of its pod."""
    return {"fieldRef": {"fieldPath": f"metadata.labels['{name}']"}}
