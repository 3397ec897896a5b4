"""Models and Datasets whose files a Job writes: the run that they wait for, and the volume that they are read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kaigen.compile.builders import settings
from kaigen.compile.builders.bucket_access import destination, key_variables, transfer_arguments
from kaigen.compile.builders.job_gate import job_gate
from kaigen.compile.builders.mounts import read_only_mount
from kaigen.compile.builders.sources import JOB_OUTPUT, globs, job_files, job_folder
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Joined, Tree
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import derive_fields
from kaigen.kinds.blocks import FileSource
from kaigen.kinds.model import Dataset, Downloaded, DownloadSpec, FilesOfLoader, FilesOfRun, Model
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.compile.builders.job_output import Output
    from kaigen.kinds.job import Job, JobSpec

with lazy_imports():
    from kaigen.compile.builders import job_output as job_outputs
    from kaigen.kinds import job as jobs

M = TypeVar("M", bound=Downloaded)
_Node: TypeAlias = "tuple[type[Model] | type[Dataset] | type[Job], str, str]"
"""Kind, namespace and name of a spec."""

_JOB: FieldPath = ("spec", "source", "job", "name")
_LOADER: FieldPath = ("spec", "source", "loader")
WAVE = 3
"""Sync wave of such a Model: that of Jobs, since one of a later wave would wait for the Jobs that read the Model."""
MOST_JOBS = 8
"""Most Jobs in a chain. Each is rendered for the name of its run."""
_VOLUME = "job-output"


def job_output_of(model: Downloaded, namespace: str, context: Context) -> Output | None:
    """Return the output of the Job that writes the files of a Model; None for another source.

    Raises:
        ProblemError: there is no such Job, it has no output or errors, or it waits for this Model.
    """
    files = job_files(model.spec.source)
    if files is None:
        return None
    origin = _LOADER if isinstance(files, FilesOfLoader) else _JOB
    _check_chain(model, namespace, context, origin)
    return job_outputs.job_output(context, namespace, files.name, origin, "source.", is_mounted=False)


def reported_output(model: Downloaded, namespace: str, context: Context, problems: Problems) -> Output | None:
    """Return the output of the Job that writes the files of a Model, and report what is wrong.

    Errors of a loader are reported at its fields, by the spec of its Job.
    """
    try:
        return job_output_of(model, namespace, context)
    except job_outputs.BrokenJobError as error:
        if isinstance(job_files(model.spec.source), FilesOfLoader):
            problems.stop()
        else:
            problems.add(error.problem)
    except ProblemError as error:
        problems.add(error.problem)
    return None


def with_run(model: M, output: Output | None) -> M:
    """Return a Model with the run whose files it stores, which is part of their identity."""
    files = job_files(model.spec.source)
    if files is None or output is None:
        return model
    known = FilesOfRun(
        name=files.name, path=files.path, include=files.include, exclude=files.exclude, run=output.run_name
    )
    source = derive_fields(model.spec.source, job=known)
    return derive_fields(model, spec=derive_fields(model.spec, source=source))


def as_used(model: M, namespace: str, context: Context) -> M:
    """Return a Model as other apps refer to it: with the run whose files it stores.

    What is wrong with its Job is reported where the Model names it.
    """
    try:
        return with_run(model, job_output_of(model, namespace, context))
    except ProblemError:
        return model


def wait_for_job(spec: DownloadSpec, output: Output, context: Context) -> dict[str, Tree]:
    """Return the init container that waits for the run."""
    return job_gate(output.run, context, name="wait-for-job", transfer=spec.transfer)


def output_mounts(output: Output | None) -> list[Tree]:
    """Return the read-only mount of the Job's output; none if it is read from a bucket."""
    return [read_only_mount(_VOLUME, JOB_OUTPUT, None)] if output is not None and output.claim else []


def output_volumes(output: Output) -> list[Tree]:
    """Return the volumes of a pod that reads the output of the run."""
    if output.claim is None:
        return []
    claim: Tree = {"claimName": output.claim, "readOnly": True}
    return [{"name": _VOLUME, "persistentVolumeClaim": claim}]


def bucket_command(source: FileSource, output: Output | None) -> list[Tree] | None:
    """Return the downloader's command and its arguments about the bucket of the output; None for the volume."""
    files = job_files(source)
    if files is None or output is None or output.bucket is None or output.folder is None:
        return None
    arguments, _ = transfer_arguments(output.bucket, ())
    folder = job_folder(files)
    parts: list[str | Expr] = [f"--uri={destination(output.bucket)}/", output.folder]
    place = Joined((*parts, f"/{folder}") if folder else tuple(parts))
    return ["fetch", "s3", place, *(each.replace("--s3-", "--") for each in arguments), *globs(files)]


def bucket_variables(output: Output | None) -> list[Tree]:
    """Return the variables with the keys of the bucket of the output."""
    bucket = output.bucket if output is not None else None
    secret = bucket.credentials.secret if bucket is not None and bucket.credentials is not None else None
    if bucket is None or secret is None:
        return []
    prefix = "download.sourceCredentials"
    name = settings.text(f"{prefix}.name", secret.name, "Secret with the keys of the bucket of the output.")
    return [
        {
            "name": f"SOURCE_{variable}",
            "valueFrom": {
                "secretKeyRef": {
                    "name": name,
                    "key": settings.text(f"{prefix}.{part}", key, f"Key of the {what} in that Secret."),
                }
            },
        }
        for variable, (part, key, what) in key_variables(secret, bucket.scheme).items()
    ]


def bucket_account(output: Output | None) -> Mapping[str, str]:
    """Return the annotations of the service account that may read the bucket of the output."""
    bucket = output.bucket if output is not None else None
    account = bucket.credentials.service_account if bucket is not None and bucket.credentials is not None else None
    return account.annotations if account is not None else {}


def _check_chain(model: Downloaded, namespace: str, context: Context, origin: FieldPath) -> None:
    """Report specs that wait for each other, and chains of very many.

    Raises:
        ProblemError: the Job waits for the Model, or its files come from too many Jobs.
    """
    start: _Node = (type(model), namespace, model.metadata.name)
    pending: list[tuple[_Node, ...]] = [(start,)]
    longest: dict[_Node, int] = {}
    while pending:
        path = pending.pop()
        for node in _waits_for(path[-1], context):
            chain = (*path, node)
            count = sum(1 for kind, *_ in chain if kind is jobs.Job)
            if node == start:
                raise ProblemError(
                    "KG0388", f"{_text(chain)} wait for each other", origin, "remove one of the references"
                )
            if count > MOST_JOBS and node not in path:
                raise ProblemError(
                    "KG0388",
                    f"the files come from a chain of more than {MOST_JOBS} Jobs",
                    origin,
                    "refer to stored files, such as `source.s3`, in a Model of the chain",
                )
            if node not in path and longest.get(node, 0) < count + 1:
                longest[node] = count + 1
                pending.append(chain)


def _text(chain: tuple[_Node, ...]) -> str:
    return ", ".join(f"{kind.__name__} `{name}`" for kind, _, name in dict.fromkeys(chain))


def _waits_for(node: _Node, context: Context) -> Iterator[_Node]:
    """Yield the Models, Datasets and Jobs that a spec names and waits for."""
    kind, namespace, name = node
    if kind is jobs.Job:
        job = context.specs.find(jobs.Job, namespace, name)
        yield from _read_by(job.spec, namespace) if job is not None else ()
        return
    model: Downloaded | None = context.specs.find(Model, namespace, name)
    if kind is Dataset:
        model = context.specs.find(Dataset, namespace, name)
    files = job_files(model.spec.source) if model is not None else None
    if files is not None:
        yield jobs.Job, namespace, files.name


def _read_by(spec: JobSpec, namespace: str) -> Iterator[_Node]:
    use = jobs.ModelUse(name=spec.model) if isinstance(spec.model, str) else spec.model
    if use is not None and use.name:
        yield Model, use.namespace or namespace, use.name
    inputs = spec.inputs.files if isinstance(spec.inputs, jobs.Inputs) else spec.inputs or []
    for file in inputs:
        if file.dataset:
            yield Dataset, file.namespace or namespace, file.dataset
