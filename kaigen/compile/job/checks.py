"""Checks of a resolved Job: fields without effect, and decisions that contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial

from msgspec import Struct, field

from kaigen.compile.builders.image_build import check_build
from kaigen.compile.builders.mounts import check_mounts
from kaigen.compile.builders.pod_options import check_pod_options
from kaigen.compile.builders.pods import check_capabilities
from kaigen.compile.builders.queueing import check_queueing
from kaigen.compile.builders.storage import check_access_modes
from kaigen.compile.expressions import Tree
from kaigen.compile.job.classify import check_classify
from kaigen.compile.job.inputs import check_inputs, check_job_egress
from kaigen.compile.job.pod import SHARDS, container_mounts, node_variables, own_pod, params_of
from kaigen.compile.job.resolution import JobResolution
from kaigen.compile.job.restore import check_restore
from kaigen.compile.job.schedule import check_schedule
from kaigen.compile.job.tune import check_tune
from kaigen.compile.job.upload import check_upload
from kaigen.compile.pod_template import check_pod_template
from kaigen.compile.problems import Problems, ignored_fields, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import document_names, set_fields
from kaigen.kinds.gate import GATES
from kaigen.kinds.job import JobSpec
from kaigen.kinds.pod import PodFields
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.compile.job import gate, generate


def check_job(resolution: JobResolution, problems: Problems) -> None:
    """Report every problem of a Job that its resolution did not."""
    spec, output = resolution.spec, resolution.output
    if output and spec.nodes > 1 and "ReadWriteMany" not in output.access_modes:
        problems.error(
            "KG0309",
            f"{spec.nodes} nodes cannot share a volume of access mode {', '.join(output.access_modes)}",
            ("spec", "output", "volume"),
            "use `accessModes: [ReadWriteMany]` with a storage class that supports it",
        )
    _check_shards(resolution, problems)
    single = "" if max(spec.nodes, spec.shards) > 1 else "on one pod"
    check_queueing(spec.placement, resolution.context.profile, problems, why_single=single)
    check_build(spec.build, spec.image, problems)
    if output:
        check_access_modes(output, resolution.context, ("spec", "output", "volume"), problems)
    _check_lifetimes(resolution, problems)
    check_schedule(spec, problems)
    check_fields(spec, problems)
    if spec.template is not None:
        check_pod_template(spec.template, problems)
        return
    if spec.groups is not None and spec.nodes == 1:
        report_ignored_field(problems, "groups", ("spec", "groups"), "on one node", "leave it out")
    check_mounts(container_mounts(resolution), _mount_origin, problems)
    check_pod_options(
        partial(own_pod, resolution), spec, resolution.metadata.name, resolution.context, problems, nodes=spec.nodes
    )
    check_capabilities(spec.security, problems)
    check_classify(spec, problems)
    namespace = resolution.metadata.namespace or resolution.context.config.namespace
    check_tune(spec, namespace, resolution.context, problems)
    if spec.workload == "generate":
        generate.check_generate(spec, namespace, resolution.context, problems)
    elif spec.workload in GATES:
        gate.check_gate(spec, namespace, resolution.context, problems)
    _check_variables(resolution, problems)
    check_inputs(resolution, problems)
    check_job_egress(resolution, problems)
    check_upload(resolution, problems)
    check_restore(resolution, problems)


def _check_lifetimes(resolution: JobResolution, problems: Problems) -> None:
    spec, output = resolution.spec, resolution.output
    volume: FieldPath = ("spec", "output", "volume")
    if output and output.ttl is not None and output.retain and "retain" in set_fields(output):
        problems.error("KG0369", "a volume that expires is not retained", (*volume, "retain"), "keep `ttl` or `retain`")
    if not resolution.has_job_set:
        return
    # A JobSet creates and deletes its Jobs itself, with the metadata of its template, which is immutable.
    where, hint = f"on a {resolution.workload.value}", "set `groups: indexedJob`"
    if spec.ttl is not None:
        report_ignored_field(problems, "ttl", ("spec", "ttl"), where, hint)
    if output and output.ttl is not None:
        report_ignored_field(problems, "ttl", (*volume, "ttl"), where, hint)


def _check_shards(resolution: JobResolution, problems: Problems) -> None:
    spec, output = resolution.spec, resolution.output
    if spec.shards > 1 and spec.nodes > 1:
        problems.error(
            "KG0368",
            f"{spec.nodes} nodes work together, and {spec.shards} shards do not",
            ("spec", "shards"),
            "keep `nodes` or `shards`",
        )
    for name, value in (("parallelism", spec.parallelism), ("maxFailedShards", spec.max_failed_shards)):
        if spec.shards == 1 and value is not None:
            where, hint = "without `shards`", "set `shards`, or leave it out"
            report_ignored_field(problems, name, ("spec", name), where, hint)
    if output and spec.shards > 1 and "ReadWriteMany" not in output.access_modes:
        problems.warning(
            "KG0309",
            f"{spec.shards} shards can share a volume of access mode {', '.join(output.access_modes)} on one node only",
            ("spec", "output", "volume"),
            "use `accessModes: [ReadWriteMany]` with a storage class that supports it",
        )
    if spec.shards > 1 and SHARDS in spec.env:
        message = f"`{SHARDS}` is set by kaigen for a Job with shards"
        problems.error("KG0313", message, ("spec", "env", SHARDS), "leave it out")


def _mount_origin(volumes: tuple[Tree, Tree]) -> FieldPath:
    field = next((field for field in ("inputs", "model") if field in volumes), "output")
    return ("spec", field)


def _check_variables(resolution: JobResolution, problems: Problems) -> None:
    """Report two sources of one variable."""
    spec = resolution.spec
    what = "several nodes" if spec.nodes > 1 else "a schedule"
    for name in (str(entry["name"]) for entry in node_variables(resolution)):
        if name in spec.env:
            message = f"`{name}` is set by kaigen for a Job with {what}"
            problems.error("KG0313", message, ("spec", "env", name), "leave it out")
    params_of(resolution).check(spec.env, problems)


class Runs(Struct, frozen=True):
    """What a Job runs.

    Attributes:
        where: end of the message about a field without effect.
        understood: the fields that have one.
        hint: what to do in place of the others.
        hints: other hints, by field.
    """

    where: str
    understood: Set[str]
    hint: str
    hints: Mapping[str, str] = field(default_factory=dict)


_PODS = frozenset(
    (
        *("schedule", "monitoring", "retries", "deadline", "ttl", "placement.queue", "placement.priority"),
        "security.podSecurity",
        # A document sets exactly one of these.
        *JobSpec.exactly_one,
    )
)
_CONTAINER = _PODS | {
    *("env", "model", "inputs", "output", "resources", "placement", "security"),
    *("nodes", "shards", "parallelism", "maxFailedShards", "groups"),
    *document_names(PodFields),
}

_WORKLOADS = ("benchmark", "classify", "evaluate", "generate")

TEMPLATE = Runs("on a pod template", _PODS, "set it in the template")
IMAGE = Runs(
    "on an image of your own",
    _CONTAINER | {"command", "args", "params", "paramsFile"},
    "leave it out",
    {name: f"set `workload: {name}` in place of the image" for name in _WORKLOADS},
)
CLASSIFY = Runs(
    "on `workload: classify`",
    _CONTAINER | {"classify", "params", "paramsFile"},
    "use the fields of `classify`, or an image of your own",
)
GENERATE = Runs(
    "on `workload: generate`",
    _CONTAINER | {"generate"},
    "use the fields of `generate`, or an image of your own",
)
TUNE = Runs(
    "next to `tune`",
    _CONTAINER,
    "use the fields of `tune`, or an image of your own",
    {name: f"set `workload: {name}` in place of `tune`" for name in _WORKLOADS},
)
_ONE_POD = frozenset(("schedule", "model", "nodes", "shards", "parallelism", "maxFailedShards", "groups"))
BENCHMARK = Runs(
    "on `workload: benchmark`",
    _CONTAINER - _ONE_POD | {"benchmark", "target", "require"},
    "use the fields of `benchmark`, or an image of your own",
)
EVALUATE = Runs(
    "on `workload: evaluate`",
    _CONTAINER - _ONE_POD | {"evaluate", "target", "require"},
    "use the fields of `evaluate`, or an image of your own",
)
_RUNS = {None: IMAGE, "benchmark": BENCHMARK, "classify": CLASSIFY, "evaluate": EVALUATE, "generate": GENERATE}


def runs_of(spec: JobSpec) -> Runs:
    """Return what a Job runs."""
    if spec.template is not None:
        return TEMPLATE
    if spec.tune is not None:
        return TUNE
    return _RUNS[spec.workload]


def check_fields(spec: JobSpec, problems: Problems) -> None:
    """Report every field that has no effect on what a Job runs."""
    runs = runs_of(spec)
    for name, path in ignored_fields(spec, runs.understood):
        report_ignored_field(problems, str(path[-1]), path, runs.where, runs.hints.get(name, runs.hint))
