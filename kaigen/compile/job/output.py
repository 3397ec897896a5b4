"""The output of a Job as other apps use it: the run that writes it, and the claim that stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kaigen.compile.builders import settings
from kaigen.compile.builders.job_gate import AwaitedRun
from kaigen.compile.context import Context
from kaigen.compile.expressions import SpecPath
from kaigen.compile.job.compile import compile_job
from kaigen.compile.model.volume import find_job
from kaigen.compile.problems import Problems
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.blocks import Volume
from kaigen.kinds.job import Job
from kaigen.kubernetes.kind_table import find_kind


class Output(Struct, frozen=True):
    """The output of a Job.

    Attributes:
        run: the Job or JobSet that writes it.
        claim: name of the claim that stores it.
        volume: the spec's block.
    """

    run: AwaitedRun
    claim: str
    volume: Volume


def job_output(context: Context, namespace: str, name: str, origin: SpecPath, prefix: str) -> Output:
    """Return the output of a Job.

    Args:
        context: contains the specs of the run.
        namespace: namespace of the spec that refers to the Job.
        name: name of the Job.
        origin: the spec's field that names it.
        prefix: prefix of the settings' paths.

    Raises:
        ProblemError: there is no such Job, it has no output, or it has errors.
    """
    job = find_job(context, namespace, name, origin)
    if job.spec.output is None:
        raise ProblemError(
            "KG0301",
            f"Job `{name}` has no `output`",
            origin,
            f"set `output.volume` of Job `{name}` to store the weights",
        )
    objects = _objects(job, context, namespace)
    runs = [item for item in objects if find_kind(item["apiVersion"], item["kind"]).lifecycle == "run"]
    claims = [item for item in objects if item["kind"] == "PersistentVolumeClaim"]
    if not runs or not claims:
        raise ProblemError(
            "KG0301",
            f"Job `{name}` has errors, so its run is unknown",
            origin,
            f"run `kaigen validate` on Job `{name}`",
        )
    run = AwaitedRun(
        runs[0]["kind"],
        runs[0]["apiVersion"].partition("/")[0],
        settings.text(
            f"{prefix}jobName",
            runs[0]["metadata"]["name"],
            f"{runs[0]['kind']} that writes the weights; pods wait until it has completed.",
            origin=origin,
        ),
    )
    return Output(run, claims[0]["metadata"]["name"], job.spec.output.volume)


def _objects(job: Job, context: Context, namespace: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a Job as they are rendered; none when it has errors."""
    if context.objects_of is not None:
        return context.objects_of(("Job", namespace, job.metadata.name), context) or ()
    problems = Problems()
    app = compile_job(job, context, problems)
    return () if problems.failed else [item.body for item in app.render()]
