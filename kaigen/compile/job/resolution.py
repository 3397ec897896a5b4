"""The resolution of a Job: every decision that its spec leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.image_build import ImageBuild, image_build
from kaigen.compile.builders.mounts import Mounted, Readers
from kaigen.compile.builders.params import ParamsOf
from kaigen.compile.builders.pods import (
    BUILT,
    NO_RESOURCES,
    ResolvedResources,
    default_shared_memory,
    gpu_count,
    placement_fields,
    pod_security,
)
from kaigen.compile.builders.resources import work_resources
from kaigen.compile.context import Context
from kaigen.compile.expressions import Release, Tree
from kaigen.compile.finish import frame_of
from kaigen.compile.job import classify, tune
from kaigen.compile.job.mounts import job_datasets, job_weights, with_folders
from kaigen.compile.job.tune import tune_memory
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import Metadata
from kaigen.kinds.block import replace_fields
from kaigen.kinds.blocks import Image, Resources
from kaigen.kinds.compat import Naming
from kaigen.kinds.gate import GATES
from kaigen.kinds.job import Inputs, Job, JobSpec, OutputVolume
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    # They need the engines and Topologies, which other Jobs do not.
    from kaigen.compile.job import gate, generate

_SCRATCH_FOLDERS = ("/tmp", "/scratch", "/var/tmp")
"""Folders that the container may write to; the first one without a volume is used."""


TRAINER_CONTAINER = "node"
"""Name of the container that Kubeflow Trainer requires (source: `expectedContainerNames` in
pkg/webhooks/trainingruntime_webhook.go of github.com/kubeflow/trainer/v2 v2.2.1)."""


class Workload(Enum):
    """Which object runs the pods."""

    JOB = "Job"
    INDEXED_JOB = "Indexed Job"
    JOB_SET = "JobSet"
    TRAIN_JOB = "TrainJob"
    """Kubeflow Trainer makes a JobSet with the name of the TrainJob."""


_GROUPS = {"indexedJob": Workload.INDEXED_JOB, "jobSet": Workload.JOB_SET, "trainJob": Workload.TRAIN_JOB}


class JobResolution(Struct, frozen=True):
    """A Job with every decision that its spec leaves open.

    Attributes:
        metadata: metadata of the spec.
        spec: the spec.
        context: what it is compiled for.
        naming: names in its objects.
        frame: names and labels of its objects.
        workload: which object runs the pods.
        resources: resources of each pod.
        inputs: files that are fetched before the run; None without inputs.
        output: the volume for results; None without one.
        weights: how the weights that the run starts from reach the container.
        datasets: how its Datasets reach the container.
        image: image of the container, and the spec's field of it; None where a template has the containers.
        build: the image that the app builds; None for an existing one.
        program: kaigen's own program that the container runs; None for another one.
        rules: what the container may read and write by the API server.
        scratch_folder: folder that the container may write to.
        scheduling: fields of the pod that decide where it runs.
        security: security context of the pod.
    """

    metadata: Metadata
    spec: JobSpec
    context: Context
    naming: Naming
    frame: Frame
    workload: Workload
    resources: ResolvedResources
    inputs: Inputs | None
    output: OutputVolume | None
    weights: Mounted
    datasets: Mounted
    image: tuple[Image, FieldPath] | None
    build: ImageBuild | None
    program: Program | None
    rules: Sequence[Tree]
    scratch_folder: str
    scheduling: Mapping[str, Tree]
    security: Mapping[str, Tree]

    @property
    def arguments(self) -> Sequence[str] | None:
        """Arguments of the container; None for those of its image."""
        return self.spec.args if self.program is None else self.program.arguments

    @property
    def has_job_set(self) -> bool:
        """Whether the pods are those of a JobSet with the name of the run."""
        return self.workload in (Workload.JOB_SET, Workload.TRAIN_JOB)

    @property
    def claim_name(self) -> Release:
        """Name of the claim for results."""
        named = self.naming.plain or self.naming.claim_prefix
        return Release("" if named else "-output", self.naming.claim_prefix)


def resolve_job(job: Job, context: Context, problems: Problems, naming: Naming) -> JobResolution:
    """Decide what a Job leaves open.

    Args:
        job: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: collects what cannot be decided.
        naming: names in its objects.
    """
    spec, frame = (
        job.spec,
        frame_of(
            job.metadata, context, job.spec, {name: value or Release() for name, value in naming.pod_labels.items()}
        ),
    )
    namespace = job.metadata.namespace or context.config.namespace
    workload = _workload(spec, context)
    if workload is Workload.TRAIN_JOB:
        naming = replace(naming, container=TRAINER_CONTAINER)
    memory = problems.attempt(lambda: _memory(spec, namespace, context), None)
    resources = problems.attempt(
        lambda: work_resources(_resources(spec), context, shared_memory=not naming.plain, memory=memory), NO_RESOURCES
    )
    inputs = Inputs(files=spec.inputs) if isinstance(spec.inputs, list) else spec.inputs
    inputs = with_folders(inputs) if inputs is not None else None
    output = spec.output.volume if spec.output else None
    if inputs is not None and inputs.into is not None and output is not None:
        inputs = replace_fields(inputs, mount_path=output.mount_path)
    pods, noun = max((spec.nodes, "nodes"), (spec.shards, "shards"))
    readers = Readers(
        kind="Job",
        namespace=namespace,
        context=context,
        frame=frame,
        pods=pods,
        noun=noun,
        spread=spec.nodes > 1,
        has_gpu=resources.has_gpu,
    )
    weights = problems.attempt(lambda: job_weights(spec, readers, naming, problems), Mounted())
    datasets = problems.attempt(lambda: job_datasets(spec, inputs, readers, problems), Mounted())
    scratch = _scratch_folder(spec, inputs, output, weights)
    program = own_program(
        spec, inputs, output, namespace, context, problems, has_gpu=resources.has_gpu, scratch=scratch
    )
    build = image_build(spec.build, frame, context)
    nothing: dict[str, Tree] = {}
    scheduling, security = nothing, nothing
    if spec.template is None:
        scheduling = problems.attempt(lambda: placement_fields(frame, spec.placement, context, resources), nothing)
        security = problems.attempt(lambda: pod_security(spec.security), nothing)
    return JobResolution(
        metadata=job.metadata,
        spec=spec,
        context=context,
        naming=naming,
        frame=frame,
        workload=workload,
        resources=resources,
        inputs=inputs,
        output=output,
        weights=weights,
        datasets=datasets,
        image=_image(spec, program) if build is None else (build.reference, BUILT),
        build=build,
        program=program,
        rules=gate.gate_rules(spec, namespace, context) if spec.workload in GATES else (),
        scratch_folder=scratch,
        scheduling=scheduling,
        security=security,
    )


def _resources(spec: JobSpec) -> Resources:
    """Return the resources of the spec, with the shared memory that vLLM needs without GPUs, too."""
    resources = spec.resources
    if spec.workload != "generate" or resources.shared_memory is not None:
        return resources
    return replace_fields(resources, shared_memory=default_shared_memory(gpu_count(resources)))


def _memory(spec: JobSpec, namespace: str, context: Context) -> str | None:
    if spec.workload == "generate":
        return generate.generate_memory(spec, namespace, context)
    if spec.workload in GATES:
        return gate.MEMORY[spec.workload]
    return tune_memory(spec, namespace, context)


def _image(spec: JobSpec, program: Program | None) -> tuple[Image, FieldPath] | None:
    if program is not None:
        return program.image, program.image_origin
    return None if spec.image is None else (spec.image, ("spec", "image"))


def _workload(spec: JobSpec, context: Context) -> Workload:
    if spec.nodes == 1 or spec.template is not None:
        return Workload.JOB
    # A CronJob starts Jobs only.
    if spec.schedule is not None:
        return Workload.INDEXED_JOB
    default = "jobSet" if context.profile.job_set else "indexedJob"
    return _GROUPS[spec.groups or default]


def _scratch_folder(spec: JobSpec, inputs: Inputs | None, output: OutputVolume | None, weights: Mounted) -> str:
    mounted = [str(mount["mountPath"]) for mount in weights.mounts]
    mounted += [volume.mount_path for volume in (inputs, output) if volume is not None]
    taken = {folder.rstrip("/") for folder in mounted}
    return next(folder for folder in _SCRATCH_FOLDERS if folder not in taken)


class Program(Struct, frozen=True):
    """One of kaigen's own programs with its settings.

    Attributes:
        image: its image.
        image_origin: the spec's field of the image; empty for the default image.
        arguments: its arguments.
        permanent: exit codes after which a retry cannot succeed.
        params: its settings in a file; None where all are arguments.
        command: its entry point; empty for that of the image.
        env: variables that it needs, if the spec does not set them.
        variables: variables that are no plain texts.
        entry: the entry point of the image.
    """

    image: Image
    image_origin: FieldPath
    arguments: Sequence[str]
    permanent: tuple[int, ...]
    params: ParamsOf | None = None
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    variables: Sequence[Tree] = ()
    entry: Sequence[str] = ()


def own_program(
    spec: JobSpec,
    inputs: Inputs | None,
    output: OutputVolume | None,
    namespace: str,
    context: Context,
    problems: Problems,
    *,
    has_gpu: bool,
    scratch: str,
) -> Program | None:
    """Return the program of a Job; None for a Job with an image of its own.

    Args:
        spec: the spec.
        inputs: files that are fetched before the run.
        output: the volume for results.
        namespace: namespace of the app.
        context: its images are the defaults.
        problems: collects what the program lacks.
        has_gpu: whether the container has a GPU.
        scratch: folder that the container may write to.
    """
    none: list[str] = []
    settings = classify.classify_settings(spec)
    if settings is not None:
        own = settings.image
        return Program(
            own if own is not None else context.config.images["classify"],
            ("spec", "classify", "image") if own is not None else (),
            problems.attempt(lambda: classify.classify_arguments(spec, inputs, output, has_gpu=has_gpu), none),
            classify.PERMANENT_EXIT_CODES,
            entry=classify.ENTRY,
        )
    if spec.workload == "generate":
        asked = generate.generate_settings(spec)
        return Program(
            generate.generate_image(spec, context),
            ("spec", "generate", "image") if asked.image is not None else (),
            generate.generate_arguments(spec, inputs, output, context, problems),
            generate.PERMANENT_EXIT_CODES,
            generate.generate_params(spec),
            generate.COMMAND,
            generate.generate_environment(spec, scratch),
        )
    if spec.workload in GATES:
        judging = gate.gate_settings(spec)
        return Program(
            gate.gate_image(spec, context),
            ("spec", spec.workload, "image") if judging is not None and judging.image is not None else (),
            problems.attempt(lambda: gate.gate_arguments(spec, namespace, context), none),
            gate.PERMANENT_EXIT_CODES,
            gate.gate_params(spec, inputs, output, namespace, context),
            gate.COMMAND,
            gate.gate_environment(scratch),
            gate.gate_variables(spec, namespace, context),
        )
    if spec.tune is None:
        return None
    own = spec.tune.image
    return Program(
        own if own is not None else context.config.images["train"],
        ("spec", "tune", "image") if own is not None else (),
        problems.attempt(lambda: tune.tune_arguments(spec, inputs, output), none),
        tune.PERMANENT_EXIT_CODES,
        tune.tune_params(spec.tune),
        entry=tune.ENTRY,
    )
