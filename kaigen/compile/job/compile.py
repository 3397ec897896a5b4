"""The compiler of the kind `Job`: one run to completion for each content of its spec."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.app import Object
from kaigen.compile.builders.access import account_objects
from kaigen.compile.builders.alerts import run_alerts
from kaigen.compile.builders.egress import identity_labels
from kaigen.compile.builders.frame import POD_SECURITY
from kaigen.compile.builders.image_build import awaited_builds, gate_failures
from kaigen.compile.builders.job_gate import gate_access
from kaigen.compile.builders.job_output import RUN
from kaigen.compile.builders.jobs import Run, completion_test, job
from kaigen.compile.builders.network import headless_service, network_policy
from kaigen.compile.builders.queueing import near_annotations, queue_labels
from kaigen.compile.builders.reaper import EXPIRING, claim_job, ttl_annotations
from kaigen.compile.builders.resources import claim_template
from kaigen.compile.builders.storage import claim
from kaigen.compile.builders.weights import PERMANENT_EXIT_CODES
from kaigen.compile.expressions import Release, Tree
from kaigen.compile.job.checks import check_job
from kaigen.compile.job.connections import connections_of
from kaigen.compile.job.groups import job_set, train_job, training_runtime
from kaigen.compile.job.inputs import job_egress, permanent_input_failures
from kaigen.compile.job.pod import MASTER_PORT, params_of, pod_pull_secrets, pod_spec
from kaigen.compile.job.resolution import JobResolution, Workload, resolve_job
from kaigen.compile.job.restore import RESTORE, restored_bucket, restored_servers
from kaigen.compile.job.schedule import cron_job
from kaigen.compile.job.upload import upload
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.pod_template import pod_template
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import OutputVolume, Ttl, VolumeTtl
from kaigen.kubernetes.queues import PRIORITY_LABEL, QUEUE_LABEL

_WAVE = 3


def job_objects(resolution: JobResolution) -> list[Object]:
    """Return the objects of a Job, in the order of values.yaml."""
    spec, frame, resources = resolution.spec, resolution.frame, resolution.resources
    objects: list[Object] = []
    if resolution.output and resolution.output.ttl is None:
        objects.append(_claim(resolution, resolution.output))
    objects += [*resolution.weights.objects, *resolution.datasets.objects]
    objects += params_of(resolution).config_maps(frame, RUN)
    if resources.device_class:
        objects.append(claim_template(frame, resources.device_class, resources.device_count))
    if resolution.workload is Workload.INDEXED_JOB:
        objects.append(headless_service(frame, RUN, MASTER_PORT))
    objects += account_objects(spec, frame, RUN)
    objects += gate_access(spec, frame, awaited_builds(resolution.build), resolution.rules)
    if resolution.build is not None:
        objects.append(resolution.build.job)
    run = _run(resolution)
    runtime = training_runtime(run) if resolution.workload is Workload.TRAIN_JOB else None
    workload = cron_job(run, resolution.spec) or _workload(run, resolution, runtime)
    labels = {key: value for key, value in (run.labels or {}).items() if key not in (QUEUE_LABEL, PRIORITY_LABEL)}
    uploaded = upload(resolution, workload, _WAVE, labels, run.annotations or {})
    last = workload if uploaded is None else uploaded.job
    # The policy has the name of its run. Argo CD prunes in the reverse order of the waves: while it creates the new
    # policy, in an earlier wave than the Job, it deletes the old Job, and waits until the pods of that have ended.
    policy = network_policy(frame, among_themselves=resolution.workload is not Workload.JOB, name=workload.name)
    if resolution.output and resolution.output.ttl is not None:
        objects += _claim_job(resolution, resolution.output, resolution.output.ttl, last.name)
    objects += [policy, *job_egress(resolution, RUN)]
    runs = [workload] if runtime is None else [runtime, workload]
    runs = runs if uploaded is None else [*uploaded.access, *runs, uploaded.job]
    return [
        *objects,
        *run_alerts(resolution, spec.monitoring, runs),
        *runs,
        *completion_test(frame, last, resolution.context),
    ]


def _workload(run: Run, resolution: JobResolution, runtime: Object | None) -> Object:
    if runtime is not None:
        return train_job(run, runtime)
    return job_set(run) if resolution.workload is Workload.JOB_SET else job(run)


def _claim(resolution: JobResolution, output: OutputVolume) -> Object:
    return claim(
        resolution.frame,
        resolution.context,
        output,
        what="output",
        name=resolution.claim_name,
        retain=output.retain,
        origin=("spec", "output", "volume"),
        role="persistentvolumeclaim",
        wave=_WAVE,
    )


def _claim_job(resolution: JobResolution, output: OutputVolume, ttl: Ttl | VolumeTtl, run: Tree) -> list[Object]:
    return claim_job(
        resolution.frame,
        resolution.context,
        output,
        ttl,
        run=run,
        what="output",
        name=resolution.claim_name,
        origin=("spec", "output", "volume"),
        pull=pod_pull_secrets(resolution),
    )


def _run(resolution: JobResolution) -> Run:
    spec, weights = resolution.spec, resolution.weights
    # The reaper finds the Job of a volume by the label too.
    output = resolution.output
    expires = spec.ttl is not None or (output is not None and output.ttl is not None)
    level, program = spec.security.pod_security, resolution.program
    annotations = {POD_SECURITY: level} if level != "restricted" else {}
    return Run(
        resolution.frame,
        role=resolution.workload.value.lower() if resolution.has_job_set else "job",
        component=RUN,
        wave=_WAVE,
        pod=pod_spec(resolution) if spec.template is None else {},
        retries=spec.retries,
        deadline=spec.deadline,
        origin=("spec",),
        permanent={
            **({RESTORE: PERMANENT_EXIT_CODES} if restored_bucket(spec) is not None else {}),
            **weights.permanent,
            **permanent_input_failures(resolution),
            **gate_failures(resolution.build),
            **({resolution.naming.container: program.permanent} if program is not None else {}),
        },
        nodes=spec.nodes,
        labels={**queue_labels(spec.placement), **(EXPIRING if expires else {})},
        annotations=ttl_annotations(spec.ttl, ("spec", "ttl")) if spec.ttl is not None else None,
        shards=spec.shards,
        parallelism=spec.parallelism,
        max_failed_shards=spec.max_failed_shards,
        pod_labels=identity_labels(restored_servers(spec)) or None,
        pod_annotations={
            **annotations,
            **weights.annotations,
            **resolution.datasets.annotations,
            **near_annotations(spec.placement, resolution.context.profile),
        },
        name=Release("", resolution.naming.run_prefix) if resolution.naming.plain else None,
        template=_template(resolution, annotations),
    )


def _template(resolution: JobResolution, annotations: Mapping[str, str]) -> dict[str, Tree] | None:
    """Return the user's pod template; None where kaigen makes the pod."""
    template = resolution.spec.template
    if template is None:
        return None
    # Failed pods are replaced, not restarted in place, unless the template sets another policy.
    defaults = {"restartPolicy": "Never"}
    return pod_template(template, resolution.frame, RUN, annotations, defaults=defaults, doc="Spec of the pod.")


def describe_job(resolution: JobResolution) -> Description:
    """Return the summary."""
    build = resolution.build
    return Description(
        summary=(
            "Runs a Job to completion once, and again whenever its spec changes."
            if resolution.spec.schedule is None
            else "Runs a Job at the times of its schedule."
        ),
        pod_security=resolution.spec.security.pod_security,
        notes=(build.note,) if build is not None else (),
        built=(build.reference,) if build is not None else (),
    )


compile_job = KindCompiler(
    resolve=resolve_job,
    check=check_job,
    objects=job_objects,
    describe=describe_job,
    connections=connections_of,
    default_naming=Naming(),
    settings_order=(
        "image",
        "imagePullPolicy",
        "imagePullSecrets",
        "build",
        "command",
        "args",
        "env",
        "params",
        "resources",
        "model",
        "output",
        "upload",
        "restore",
        "download",
        "inputs",
        "datasets",
        "pyarrow",
        "target",
        "serviceAccount",
        "schedule",
        "retries",
        "deadlineSeconds",
        "ttl",
        "claim",
        "podSpec",
    ),
)
