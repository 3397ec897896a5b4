"""Checks of a resolved Job: fields without effect, and decisions that contradict each other."""

from __future__ import annotations

from kaigen.compile.builders.mounts import check_mounts
from kaigen.compile.builders.pod_option_checks import check_pod_options
from kaigen.compile.builders.storage import check_access_modes
from kaigen.compile.builders.weights import check_paths
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.ignored_fields import report_ignored_field
from kaigen.compile.job.nodes import node_variables
from kaigen.compile.job.pod import container_mounts, own_pod
from kaigen.compile.job.resolution import JobResolution
from kaigen.compile.pod_template import check_pod_template
from kaigen.compile.problems import Problems
from kaigen.kinds.block import document_name, set_fields
from kaigen.kinds.job import Inputs, JobSpec
from kaigen.kinds.pod import PodFields

_CONTAINER_FIELDS = (
    "command",
    "args",
    "env",
    "params",
    "model",
    "inputs",
    "output",
    "resources",
    "nodes",
    "groups",
    *PodFields.__struct_fields__,
)
"""Fields about the container and its data, which a pod template sets itself."""


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
    if output:
        check_access_modes(output, resolution.context, ("spec", "output", "volume"), problems)
    if spec.template is not None:
        _check_template_fields(spec, problems)
        check_pod_template(spec.template, problems)
        return
    if spec.groups is not None and spec.nodes == 1:
        report_ignored_field(problems, "groups", ("spec", "groups"), "on one node", "leave it out")
    check_mounts(container_mounts(resolution), _mount_origin, problems)
    check_pod_options(own_pod(resolution), spec, resolution.metadata.name, problems, nodes=spec.nodes)
    _check_variables(resolution, problems)
    if resolution.inputs is not None:
        long = isinstance(spec.inputs, Inputs)
        origin: SpecPath = ("spec", "inputs", "files") if long else ("spec", "inputs")
        check_paths(resolution.inputs.files, origin, problems)


def _check_template_fields(spec: JobSpec, problems: Problems) -> None:
    """Report fields that a pod template ignores."""
    given: list[SpecPath] = [
        (document_name(spec, name),) for name in _CONTAINER_FIELDS if name in set_fields(spec)
    ]
    for name, block, used in (
        ("placement", spec.placement, "queue"),
        ("security", spec.security, "pod_security"),
    ):
        given += [(name, document_name(block, field)) for field in set_fields(block) - {used}]
    for path in given:
        where, hint = "on a pod template", "set it in the template"
        report_ignored_field(problems, str(path[-1]), ("spec", *path), where, hint)


def _mount_origin(volumes: tuple[Tree, Tree]) -> SpecPath:
    field = next((field for field in ("inputs", "model") if field in volumes), "output")
    return ("spec", field)


def _check_variables(resolution: JobResolution, problems: Problems) -> None:
    """Report two sources of one variable."""
    spec = resolution.spec
    for name in (str(entry["name"]) for entry in node_variables(resolution)):
        if name in spec.env:
            message = f"`{name}` is set by kaigen for a Job of several nodes"
            problems.error("KG0313", message, ("spec", "env", name), "leave it out")
    sources = {name: f"`env.{name}`" for name in spec.env}
    for name in spec.params:
        variable = f"PARAM_{name.upper()}"
        source = sources.setdefault(variable, f"`params.{name}`")
        if source != f"`params.{name}`":
            problems.error(
                "KG0313",
                f"`params.{name}` becomes the variable {variable}, as does {source}",
                ("spec", "params", name),
                "rename one of them",
            )
