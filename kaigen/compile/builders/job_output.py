"""The output of a Job as other apps use it: the run that writes it, and the claim that stores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kaigen.compile.builders.found_specs import find_spec
from kaigen.compile.builders.image_build import COMPONENT as BUILD
from kaigen.compile.builders.job_gate import AwaitedRun
from kaigen.compile.builders.references import other_name
from kaigen.compile.builders.storage import SHARED
from kaigen.compile.context import Context
from kaigen.compile.expressions import DIGEST_LENGTH, NAME_MAX, Expr, SpecPath
from kaigen.compile.problems import Problems
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.blocks import Volume
from kaigen.kinds.job import Job
from kaigen.kubernetes.derived_names import longest_name
from kaigen.kubernetes.kind_table import find_kind


class Output(Struct, frozen=True):
    """The output of a Job.

    Attributes:
        run: the Job or JobSet that writes it.
        claim: name of the claim that stores it, as a setting.
        volume: the spec's block.
        run_name: name of the run in manifests.
    """

    run: AwaitedRun
    claim: Expr
    volume: Volume
    run_name: str


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
    job = find_spec(Job, context, namespace, name, origin)
    if job.spec.output is None:
        raise ProblemError(
            "KG0301",
            f"Job `{name}` has no `output`",
            origin,
            f"set `output.volume` of Job `{name}` to store what it writes",
        )
    if job.spec.output.volume.ttl is not None:
        raise ProblemError(
            "KG0369",
            f"the output of Job `{name}` expires",
            origin,
            f"leave out `output.volume.ttl` of Job `{name}`",
        )
    objects = _objects(job, context, namespace)
    runs = [item for item in objects if _is_run(item)]
    claims = [item for item in objects if item["kind"] == "PersistentVolumeClaim"]
    if not runs or not claims:
        raise ProblemError(
            "KG0301",
            f"Job `{name}` has errors, so its run is unknown",
            origin,
            f"run `kaigen validate` on Job `{name}`",
        )
    most = min(NAME_MAX, longest_name(dict(runs[0])) - DIGEST_LENGTH - 1)
    run = AwaitedRun(
        runs[0]["kind"],
        runs[0]["apiVersion"].partition("/")[0],
        other_name(
            f"{prefix}jobName",
            f"{runs[0]['kind']} that writes the weights, for which pods wait",
            name,
            runs[0]["metadata"]["name"],
            origin=origin,
            hashed=True,
            most=most,
        ),
    )
    claim = other_name(
        f"{prefix}claimName",
        "PersistentVolumeClaim with the weights",
        name,
        claims[0]["metadata"]["name"],
        origin=origin,
        most=most,
    )
    return Output(run, claim, job.spec.output.volume, runs[0]["metadata"]["name"])


def _is_run(item: Mapping[str, Any]) -> bool:
    """Return whether an object runs the container of the Job, and does not build its image."""
    labels = item["metadata"].get("labels", {})
    is_build = labels.get("app.kubernetes.io/component") == BUILD
    return find_kind(item["apiVersion"], item["kind"]).lifecycle == "run" and not is_build


def check_sharing_of_output(
    output: Output, job: str, pods: int, origin: SpecPath, problems: Problems
) -> None:
    """Warn if pods of another app cannot share the volume of a Job's output.

    Args:
        output: the output.
        job: name of the Job.
        pods: number of the pods.
        origin: the spec's field that names the Job.
        problems: collects the warning.
    """
    modes = output.volume.access_modes
    if pods > 1 and not SHARED & set(modes):
        problems.warning(
            "KG0309",
            f"{pods} pods can share the output of Job `{job}`, whose volume is {', '.join(modes)}, on one node only",
            origin,
            f"give the output of Job `{job}` `accessModes: [ReadWriteMany]`",
        )


def _objects(job: Job, context: Context, namespace: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a Job as they are rendered; none when it has errors."""
    if context.objects_of is None:
        return ()
    return context.objects_of(("Job", namespace, job.metadata.name), context) or ()
