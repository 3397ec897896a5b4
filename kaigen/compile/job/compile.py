"""The compiler of the kind `Job`: one run to completion for each content of its spec."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.app import Object
from kaigen.compile.builders.access import account_objects
from kaigen.compile.builders.devices import claim_template
from kaigen.compile.builders.frame import POD_SECURITY
from kaigen.compile.builders.job_sets import job_set
from kaigen.compile.builders.jobs import Run, completion_test, job
from kaigen.compile.builders.network import headless_service, network_policy
from kaigen.compile.builders.storage import claim
from kaigen.compile.builders.weights import PERMANENT_EXIT_CODES
from kaigen.compile.expressions import JsonText, Tree
from kaigen.compile.job.checks import check_job
from kaigen.compile.job.nodes import MASTER_PORT
from kaigen.compile.job.pod import FETCH_INPUTS, params_name, params_setting, pod_spec
from kaigen.compile.job.resolution import JobResolution, Workload, resolve_job
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.pod_template import pod_template
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import OutputVolume
from kaigen.kubernetes.queues import QUEUE_LABEL

_WAVE = 3
_COMPONENT = "run"


def job_objects(resolution: JobResolution) -> list[Object]:
    """Return the objects of a Job, in the order of values.yaml."""
    spec, frame, resources = resolution.spec, resolution.frame, resolution.resources
    objects: list[Object] = []
    if resolution.output:
        objects.append(_claim(resolution, resolution.output))
    if spec.params:
        objects.append(_params_map(resolution))
    if resources.device_class:
        objects.append(claim_template(frame, resources.device_class, resources.device_count))
    if resolution.workload is Workload.INDEXED_JOB:
        objects.append(headless_service(frame, _COMPONENT, MASTER_PORT))
    objects += account_objects(spec, frame, _COMPONENT)
    objects.append(network_policy(frame, among_themselves=resolution.workload is not Workload.JOB))
    make = job_set if resolution.workload is Workload.JOB_SET else job
    workload = make(_run(resolution))
    return [*objects, workload, *completion_test(frame, workload, resolution.context)]


def _claim(resolution: JobResolution, output: OutputVolume) -> Object:
    return claim(
        resolution.frame,
        resolution.context,
        output,
        what="output",
        suffix=resolution.output_suffix,
        retain=output.retain,
        origin=("spec", "output", "volume"),
        role="persistentvolumeclaim",
        wave=_WAVE,
    )


def _params_map(resolution: JobResolution) -> Object:
    return Object(
        role="configmap-params",
        body={
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": resolution.frame.metadata("", _COMPONENT, name=params_name(resolution)),
            "data": {"params.json": JsonText(params_setting(resolution))},
        },
    )


def _run(resolution: JobResolution) -> Run:
    spec, weights, queue = resolution.spec, resolution.weights, resolution.spec.placement.queue
    level = spec.security.pod_security
    annotations = {POD_SECURITY: level} if level != "restricted" else {}
    return Run(
        resolution.frame,
        role="jobset" if resolution.workload is Workload.JOB_SET else "job",
        component=_COMPONENT,
        wave=_WAVE,
        pod=pod_spec(resolution) if spec.template is None else {},
        retries=spec.retries,
        deadline=spec.deadline,
        origin=("spec",),
        permanent={
            **(weights.permanent if weights else {}),
            **({FETCH_INPUTS: PERMANENT_EXIT_CODES} if resolution.inputs else {}),
        },
        nodes=spec.nodes,
        labels={QUEUE_LABEL: queue} if queue else None,
        pod_annotations={**annotations, **(weights.annotations if weights else {})},
        hashed=not resolution.naming.plain,
        template=_template(resolution, annotations),
    )


def _template(resolution: JobResolution, annotations: Mapping[str, str]) -> dict[str, Tree] | None:
    """Return the user's pod template; None where kaigen makes the pod."""
    template = resolution.spec.template
    if template is None:
        return None
    # Failed pods are replaced, not restarted in place, unless the template sets another policy.
    defaults = {"restartPolicy": "Never"}
    return pod_template(
        template, resolution.frame, _COMPONENT, annotations, defaults=defaults, doc="Spec of the pod."
    )


def describe_job(resolution: JobResolution) -> Description:
    """Return the summary."""
    return Description(
        summary="Runs a Job to completion once, and again whenever its spec changes.",
        pod_security=resolution.spec.security.pod_security,
    )


compile_job = KindCompiler(
    resolve=resolve_job,
    check=check_job,
    objects=job_objects,
    describe=describe_job,
    default_naming=Naming(),
    settings_order=(
        "image",
        "imagePullPolicy",
        "imagePullSecrets",
        "command",
        "args",
        "env",
        "params",
        "resources",
        "model",
        "output",
        "download",
        "inputs",
        "serviceAccount",
        "retries",
        "deadlineSeconds",
        "podSpec",
    ),
)
