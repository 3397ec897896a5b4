"""Models and Datasets whose files a Job writes: the run that they wait for, and the volume that they are read from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from kaigen.compile.builders.job_gate import gate_token, job_gate
from kaigen.compile.builders.job_output import Output, job_output
from kaigen.compile.builders.sources import JOB_OUTPUT, job_files
from kaigen.compile.builders.volumes import read_only_mount
from kaigen.compile.context import Context
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import derived
from kaigen.kinds.job import Inputs, Job, JobSpec, ModelUse
from kaigen.kinds.model import Dataset, Downloaded, DownloadSpec, FilesOfRun, Model

M = TypeVar("M", bound=Downloaded)
_Node = tuple[type[Model] | type[Dataset] | type[Job], str]

AT: SpecPath = ("spec", "source", "job", "name")
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
    _check_chain(model, namespace, context)
    return job_output(context, namespace, files.name, AT, "source.")


def with_run(model: M, output: Output | None) -> M:
    """Return a Model with the run whose files it stores, which is part of their identity."""
    files = job_files(model.spec.source)
    if files is None or output is None:
        return model
    known = FilesOfRun(
        name=files.name,
        path=files.path,
        include=files.include,
        exclude=files.exclude,
        run=output.run_name,
    )
    source = derived(model.spec.source, job=known)
    return derived(model, spec=derived(model.spec, source=source))


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


def output_mount() -> dict[str, Tree]:
    """Return the read-only mount of the Job's output."""
    return read_only_mount(_VOLUME, JOB_OUTPUT, None)


def output_volumes(output: Output) -> list[Tree]:
    """Return the volumes of a pod that waits for the run and reads its output."""
    claim: Tree = {"claimName": output.claim, "readOnly": True}
    return [gate_token(), {"name": _VOLUME, "persistentVolumeClaim": claim}]


def _check_chain(model: Downloaded, namespace: str, context: Context) -> None:
    """Report specs that wait for each other, and chains of very many.

    Raises:
        ProblemError: the Job waits for the Model, or its files come from too many Jobs.
    """
    start: _Node = (type(model), model.metadata.name)
    pending: list[tuple[_Node, ...]] = [(start,)]
    longest: dict[_Node, int] = {}
    while pending:
        path = pending.pop()
        for node in _waits_for(path[-1], namespace, context):
            chain = (*path, node)
            jobs = sum(1 for kind, _ in chain if kind is Job)
            if node == start:
                raise ProblemError(
                    "KG0388",
                    f"{_text(chain)} wait for each other",
                    AT,
                    "remove one of the references",
                )
            if jobs > MOST_JOBS and node not in path:
                raise ProblemError(
                    "KG0388",
                    f"the files come from a chain of more than {MOST_JOBS} Jobs",
                    AT,
                    "refer to stored files, such as `source.s3`, in a Model of the chain",
                )
            if node not in path and longest.get(node, 0) < jobs + 1:
                longest[node] = jobs + 1
                pending.append(chain)


def _text(chain: tuple[_Node, ...]) -> str:
    return ", ".join(f"{kind.__name__} `{name}`" for kind, name in dict.fromkeys(chain))


def _waits_for(node: _Node, namespace: str, context: Context) -> Iterator[_Node]:
    """Yield the Models, Datasets and Jobs that a spec names and waits for."""
    kind, name = node
    if kind is Job:
        job = context.specs.find(Job, namespace, name)
        yield from _read_by(job.spec) if job is not None else ()
        return
    model: Downloaded | None = context.specs.find(Model, namespace, name)
    if kind is Dataset:
        model = context.specs.find(Dataset, namespace, name)
    files = job_files(model.spec.source) if model is not None else None
    if files is not None:
        yield Job, files.name


def _read_by(spec: JobSpec) -> Iterator[_Node]:
    model = spec.model.name if isinstance(spec.model, ModelUse) else spec.model
    if model:
        yield Model, model
    inputs = spec.inputs.files if isinstance(spec.inputs, Inputs) else spec.inputs or []
    for file in inputs:
        if file.dataset:
            yield Dataset, file.dataset
