"""The pod of a Job, and how the pods on several nodes find each other."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.builders import settings
from kaigen.compile.builders.access import account_fields, token_mount, token_volume
from kaigen.compile.builders.image_build import build_gate
from kaigen.compile.builders.job_gate import gate_account
from kaigen.compile.builders.params import ParamsOf
from kaigen.compile.builders.pod_options import extended_pod
from kaigen.compile.builders.pods import (
    NO_NETWORK,
    SCRATCH,
    entry_point,
    gpu_count,
    image_fields,
    main_container_security,
    pull_secrets,
    scratch_volume,
    shared_memory_volume,
)
from kaigen.compile.builders.settings import variables_of
from kaigen.compile.expressions import Expr, Joined, Release, Setting, Tree
from kaigen.compile.job.inputs import input_containers, own_volume
from kaigen.compile.job.resolution import JobResolution, Workload
from kaigen.compile.job.restore import entry_or_note, restored_bucket, with_restore
from kaigen.compile.job.schedule import RUN_NAME, label_value, run_folder, run_name
from kaigen.compile.job.tables import table_containers
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Image
from kaigen.kinds.job import Inputs, ModelUse
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.compile.job import generate

MASTER_PORT = 29500
"""Default port of torchrun's rendezvous (source: torch.distributed's documentation)."""

_TORCHRUN = "PET_"
"""Beginning of the variables that torchrun reads in place of options (source: torch/distributed/argparse_util.py)."""

SHARDS = "SHARDS"
"""Variable with the number of shards; Kubernetes sets that with the number of the pod."""


def pod_spec(resolution: JobResolution) -> dict[str, Tree]:
    """Return the spec of the pod."""
    return extended_pod(own_pod(resolution), resolution.spec, resolution.context)


def own_pod(resolution: JobResolution) -> dict[str, Tree]:
    """Return the spec of the pod without what the fields about pods add."""
    spec, weights = resolution.spec, resolution.weights
    build, context = resolution.build, resolution.context
    init: list[Tree] = [*build_gate(build, context), *weights.init, *resolution.datasets.init]
    init = with_restore(resolution, [*init, *input_containers(resolution)])
    if spec.workload == "generate":
        init += table_containers(generate.generate_settings(spec), resolution.scratch_folder, context)
    claims: Tree = [{"name": "gpus", "resourceClaimTemplateName": Release("-gpus")}]
    return {
        "restartPolicy": "Never",
        **account_fields(spec),
        **({"serviceAccountName": gate_account(spec)} if build is not None or resolution.rules else {}),
        "enableServiceLinks": False,
        "imagePullSecrets": pod_pull_secrets(resolution),
        **resolution.scheduling,
        **subdomain(resolution),
        "securityContext": dict(resolution.security),
        **({"resourceClaims": claims} if resolution.resources.device_class else {}),
        **({"initContainers": init} if init else {}),
        "containers": [_container(resolution)],
        "volumes": _volumes(resolution),
    }


def pod_pull_secrets(resolution: JobResolution) -> Setting:
    """Return the setting with the Secrets for pulling the images."""
    spec, inputs = resolution.spec, resolution.inputs
    transfers = [use.transfer for use in (spec.model, inputs) if isinstance(use, ModelUse | Inputs)]
    bucket = restored_bucket(spec)
    transfers += [bucket.transfer] if bucket is not None else []
    transfer_images = [transfer.image for transfer in transfers if transfer.image]
    image, origin = _image(resolution)
    return settings.pull_secrets(
        "imagePullSecrets",
        pull_secrets(image, *transfer_images, spec=spec),
        "Secrets for pulling the images.",
        origin=origin,
    )


def params_of(resolution: JobResolution) -> ParamsOf:
    """Return the parameters: those of the spec, or the settings of kaigen's own program."""
    program = resolution.program
    if program is not None and program.params is not None:
        return program.params
    return ParamsOf(resolution.spec.params, "Parameters of the Job.", resolution.spec.params_file)


def container_mounts(resolution: JobResolution) -> list[Mapping[str, Tree]]:
    """Return the volume mounts of the container."""
    weights, output, inputs = resolution.weights, resolution.output, resolution.inputs
    mounts: list[Mapping[str, Tree]] = [*weights.mounts]
    if output:
        folder = run_folder(resolution.spec)
        mounts.append({"name": resolution.naming.volume, "mountPath": output.mount_path, **folder})
    mounts += params_of(resolution).mounts()
    volume = own_volume(resolution)
    if inputs and volume:
        # The container runtime creates the folder of a Dataset in the volume.
        read_only = {} if resolution.datasets.mounts else {"readOnly": True}
        mounts.append({"name": volume, "mountPath": inputs.mount_path, **read_only})
    mounts += resolution.datasets.mounts
    mounts.append({"name": SCRATCH, "mountPath": resolution.scratch_folder})
    if resolution.rules:
        mounts.append(token_mount())
    if resolution.resources.shared_memory:
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    return mounts


def _volumes(resolution: JobResolution) -> list[Tree]:
    weights, resources, naming = resolution.weights, resolution.resources, resolution.naming
    volumes: list[Tree] = [*weights.volumes]
    volumes += resolution.datasets.volumes
    if resolution.output:
        claim = resolution.claim_name
        volumes.append({"name": naming.volume, "persistentVolumeClaim": {"claimName": claim}})
    volumes += params_of(resolution).volumes()
    if resolution.build is not None or resolution.rules:
        volumes.append(token_volume())
    inputs = own_volume(resolution)
    if inputs:
        volumes.append(scratch_volume(resources.scratch_limit, inputs))
    volumes.append(scratch_volume(resources.scratch_limit))
    if resources.shared_memory:
        volumes.append(shared_memory_volume(resources.shared_memory))
    return volumes


def _image(resolution: JobResolution) -> tuple[Image, FieldPath]:
    # Without an image there is a template, and no container of kaigen's.
    assert resolution.image is not None
    return resolution.image


def _container(resolution: JobResolution) -> dict[str, Tree]:
    spec, resources, program = resolution.spec, resolution.resources, resolution.program
    image, image_origin = _image(resolution)
    return {
        "name": resolution.naming.container,
        # What a gate asks is in the cluster.
        **(NO_NETWORK if resolution.rules else {}),
        **image_fields(image, "", image_origin),
        **entry_or_note(
            resolution, entry_point(spec.command if program is None else program.command, resolution.arguments)
        ),
        "env": _environment(resolution),
        "resources": Setting(
            "resources",
            resources.requirements,
            "Resources of the container.",
            settings.RESOURCES,
            origin=("spec", "resources"),
        ),
        "securityContext": main_container_security(spec.security, resources),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": container_mounts(resolution),
    }


def _environment(resolution: JobResolution) -> list[Tree]:
    spec = resolution.spec
    variables: list[Tree] = []
    if "HOME" not in spec.env:
        variables.append({"name": "HOME", "value": resolution.scratch_folder})
    program = resolution.program
    defaults = {**node_defaults(resolution), **(program.env if program is not None else {})}
    variables += [{"name": name, "value": value} for name, value in defaults.items() if name not in spec.env]
    variables += variables_of(spec.env)
    if spec.shards > 1:
        variables.append({"name": SHARDS, "value": str(spec.shards)})
    own = program.variables if program is not None else ()
    return [*variables, *own, *params_of(resolution).variables(), *node_variables(resolution)]


def subdomain(resolution: JobResolution) -> dict[str, Tree]:
    """Return the pod's field `subdomain`; nothing where pods need none, or where JobSet sets it."""
    if resolution.workload is not Workload.INDEXED_JOB:
        return {}
    return {"subdomain": resolution.frame.headless_service}


def node_variables(resolution: JobResolution) -> list[dict[str, Tree]]:
    """Return the variables by which the pods of several nodes find each other; nothing on one node.

    With a schedule, the name of the run is that of its folder in the output.
    """
    run = run_name()
    if resolution.workload is Workload.JOB:
        return [] if resolution.spec.schedule is None else [run]
    domain: str | Expr = resolution.frame.headless_service
    own: list[dict[str, Tree]] = []
    if resolution.has_job_set:
        # The Service of a JobSet has its name, and the name ends in a hash, so the pods read it from a label.
        domain = "$(JOBSET_NAME)"
        own.append({"name": "JOBSET_NAME", "valueFrom": label_value("jobset.sigs.k8s.io/jobset-name")})
    index: dict[str, Tree] = {"valueFrom": label_value("batch.kubernetes.io/job-completion-index")}
    shared: dict[str, dict[str, Tree]] = {
        "NNODES": {"value": str(resolution.spec.nodes)},
        "NODE_RANK": index,
        "MASTER_ADDR": {"value": Joined((f"$({RUN_NAME})-0.", domain))},
        "MASTER_PORT": {"value": str(MASTER_PORT)},
    }
    return [
        *own,
        run,
        *({"name": name, **value} for name, value in shared.items()),
        *({"name": f"{_TORCHRUN}{name}", **value} for name, value in shared.items()),
    ]


def node_defaults(resolution: JobResolution) -> Mapping[str, str]:
    """Return variables of several nodes that the spec may set itself: one process for each GPU, at least one."""
    if resolution.workload is Workload.JOB:
        return {}
    return {f"{_TORCHRUN}NPROC_PER_NODE": str(max(1, gpu_count(resolution.spec.resources)))}
