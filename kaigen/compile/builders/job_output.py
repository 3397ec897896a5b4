"""The output of a Job as other apps use it: the run that writes it, and the claim that stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kaigen.compile.builders.job_gate import AwaitedRun, job_gate
from kaigen.compile.builders.mounts import Mounted, MountPoint, Readers, mount_claim
from kaigen.compile.builders.other_apps import find_spec, other_name
from kaigen.compile.builders.storage import SHARED
from kaigen.compile.context import Context
from kaigen.compile.expressions import DIGEST_LENGTH, NAME_MAX, Expr
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.blocks import Volume
from kaigen.kinds.job import Job, OutputBucket
from kaigen.kinds.serving import JobOutput
from kaigen.kubernetes.kind_table import find_kind, longest_name
from kaigen.kubernetes.quantities import units

RUN = "run"
"""Component label of the object that runs the container of a Job."""

UPLOAD = "upload"
"""Component label of the Job that uploads the output."""

ADAPTER, MODEL = "adapter", "model"
"""Folders in which kaigen-train stores its two kinds of results (source: its README)."""


class Output(Struct, frozen=True):
    """The output of a Job.

    Attributes:
        run: the Job or JobSet that writes it, or the Job that uploads it if it is read from a bucket.
        claim: name of the claim that stores it, as a setting; None if it is read from a bucket.
        volume: the spec's block.
        run_name: name of the run in manifests.
        bucket: the bucket that it is read from; None for the volume.
        folder: the folder below the bucket's prefix, as a setting; None for the volume.
        result: folder with the result of `tune`; empty for a Job with a program of its own.
    """

    run: AwaitedRun
    claim: Expr | None
    volume: Volume
    run_name: str
    bucket: OutputBucket | None = None
    folder: Expr | None = None
    result: str = ""


def _check_result(output: Output, use: JobOutput, *, adapter: bool, origin: FieldPath) -> None:
    """Check that a folder of an output is what kaigen's trainer stores there.

    Raises:
        ProblemError: the folder has no result, or the other one.
    """
    job, path = use.name, use.path
    folder = (path or "").strip("/")
    fits = (output.result == ADAPTER) == adapter
    if not output.result or (fits and folder == output.result):
        return
    hint = f"set `path: {output.result}`"
    if not fits:
        hint = (
            f"leave out `merge` of Job `{job}`, or serve its output as the model"
            if adapter
            else f"set `tune.merge: true` of Job `{job}`, or serve its output with `adapters`"
        )
    stored = f"an adapter in `{ADAPTER}`" if output.result == ADAPTER else f"a model in `{MODEL}`"
    read = f"{'an adapter' if adapter else 'a model'} in {f'`{path}`' if path else 'its root'}"
    message = f"Job `{job}` stores {stored}, and this app reads {read}"
    raise ProblemError("KG0375", message, origin, hint)


class BrokenJobError(ProblemError):
    """Raised where the run of a Job is unknown because the Job has errors."""


def job_output(
    context: Context, namespace: str, name: str, origin: FieldPath, prefix: str, *, is_mounted: bool = True
) -> Output:
    """Return the output of a Job.

    Args:
        context: contains the specs of the run.
        namespace: namespace of the spec that refers to the Job.
        name: name of the Job.
        origin: the spec's field that names it.
        prefix: prefix of the settings' paths.
        is_mounted: whether pods mount it; files that are copied are read from its bucket, if it has one.

    Raises:
        ProblemError: there is no such Job, it has no output, or it has errors (BrokenJobError).
    """
    job = find_spec(Job, context, namespace, name, origin)
    if job.spec.output is None:
        raise ProblemError(
            "KG0301",
            f"Job `{name}` has no `output`",
            origin,
            f"set `output.volume` of Job `{name}` to store what it writes",
        )
    if job.spec.schedule is not None:
        raise ProblemError(
            "KG0338",
            f"Job `{name}` has a schedule, so no single run writes its output",
            origin,
            "name a Job without a schedule, or mount its volume: "
            "`volumes: [{name: results, persistentVolumeClaim: {claimName: …}}]`",
        )
    bucket = None if is_mounted else job.spec.output.bucket
    if job.spec.output.volume.ttl is not None and bucket is None:
        leave_out = f"leave out `output.volume.ttl` of Job `{name}`"
        raise ProblemError(
            "KG0369",
            f"the output of Job `{name}` expires",
            origin,
            f"{leave_out}, or name a Model with `source: {{job: {{name: {name}}}}}`, which reads the bucket"
            if job.spec.output.bucket is not None
            else leave_out,
        )
    objects = _objects(job, context, namespace)
    runs = [item for item in objects if _is_run(item)]
    uploads = [item for item in objects if _component(item) == UPLOAD and item["kind"] == "Job"]
    claims = [item for item in objects if item["kind"] == "PersistentVolumeClaim"]
    if not runs or not (claims if bucket is None else uploads):
        error = ProblemError if objects else BrokenJobError
        raise error(
            "KG0301",
            f"Job `{name}` has errors, so its run is unknown",
            origin,
            f"run `kaigen validate` on Job `{name}`",
        )
    most = _most(runs[0], name)
    if uploads:
        most = min(most, _most(uploads[0], name))

    def named(item: Mapping[str, Any], setting: str, what: str, *, hashed: bool) -> Expr:
        found = item["metadata"]["name"]
        return other_name(f"{prefix}{setting}", what, name, found, origin=origin, hashed=hashed, most=most)

    run_name = runs[0]["metadata"]["name"]
    if bucket is not None:
        upload = named(uploads[0], "jobName", "Job that uploads the files, for which pods wait", hashed=True)
        folder = named(runs[0], "runName", "Folder of the bucket with the files", hashed=True)
        return Output(AwaitedRun("Job", "batch", upload), None, job.spec.output.volume, run_name, bucket, folder)
    awaited = f"{runs[0]['kind']} that writes the weights, for which pods wait"
    run = AwaitedRun(
        runs[0]["kind"], runs[0]["apiVersion"].partition("/")[0], named(runs[0], "jobName", awaited, hashed=True)
    )
    claim = named(claims[0], "claimName", "PersistentVolumeClaim with the weights", hashed=False)
    return Output(run, claim, job.spec.output.volume, run_name, result=_result(job))


def _most(run: Mapping[str, Any], app: str) -> int:
    """Return the most characters of the beginning of all names of an app, by the name of one of its runs."""
    suffix = run["metadata"]["name"].removeprefix(app).rpartition("-")[0]
    return min(NAME_MAX, longest_name(dict(run)) - len(suffix) - DIGEST_LENGTH - 1)


def _component(item: Mapping[str, Any]) -> object:
    return item["metadata"].get("labels", {}).get("app.kubernetes.io/component")


def _result(job: Job) -> str:
    tune = job.spec.tune
    if tune is None:
        return ""
    return MODEL if tune.merge or tune.method == "full" else ADAPTER


def _is_run(item: Mapping[str, Any]) -> bool:
    """Return whether an object runs the container of the Job."""
    return find_kind(item["apiVersion"], item["kind"]).lifecycle == "run" and _component(item) == RUN


def mount_output(
    use: JobOutput, point: MountPoint, readers: Readers, at: FieldPath, problems: Problems, *, adapter: bool
) -> Mounted:
    """Return the mount of what a Job writes to its output, for which the pods wait until the Job has completed.

    Args:
        use: the Job, and the folder in its output.
        point: where it is mounted.
        readers: the pods.
        at: the spec's field of the block.
        problems: collects a warning about pods that cannot share it.
        adapter: whether it is served as an adapter, in place of a model.

    Raises:
        ProblemError: there is no such Job, it has no such output, or it has errors.
    """
    job, origin = use.name, (*at, "name")
    output = job_output(readers.context, readers.namespace, job, origin, point.settings)
    _check_result(output, use, adapter=adapter, origin=origin)
    modes = output.volume.access_modes
    if readers.pods > 1 and not SHARED & set(modes):
        problems.warning(
            "KG0309",
            f"{readers.pods} {readers.noun} can share the output of Job `{job}`, whose volume is {', '.join(modes)}, "
            "on one node only",
            origin,
            f"give the output of Job `{job}` `accessModes: [ReadWriteMany]`",
        )
    return replace(
        mount_claim(output.claim, point, use.path),
        init=[job_gate(output.run, readers.context, name=point.gate, transfer=point.transfer)],
        runs=[output.run],
        room=units(output.volume.size) or 0,
    )


def _objects(job: Job, context: Context, namespace: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a Job as they are rendered; none when it has errors."""
    if context.objects_of is None:
        return ()
    return context.objects_of(("Job", namespace, job.metadata.name), context) or ()
