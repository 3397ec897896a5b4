"""The pod of a Job."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.builders import settings
from kaigen.compile.builders.access import account_fields, token_volume
from kaigen.compile.builders.image_build import build_gate
from kaigen.compile.builders.job_gate import gate_account
from kaigen.compile.builders.params import ParamsOf
from kaigen.compile.builders.pod_options import extended_pod
from kaigen.compile.builders.pods import (
    SCRATCH,
    entry_point,
    image_fields,
    main_container_security,
    pull_secrets,
    scratch_volume,
    shared_memory_volume,
)
from kaigen.compile.builders.variables import variables_of
from kaigen.compile.expressions import Release, Setting, Tree
from kaigen.compile.job.inputs import input_containers, own_volume
from kaigen.compile.job.nodes import node_defaults, node_variables, subdomain
from kaigen.compile.job.resolution import JobResolution
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Image
from kaigen.kinds.job import Inputs, ModelUse

SHARDS = "SHARDS"
"""Variable with the number of shards; Kubernetes sets that with the number of the pod."""


def pod_spec(resolution: JobResolution) -> dict[str, Tree]:
    """Return the spec of the pod."""
    return extended_pod(own_pod(resolution), resolution.spec, resolution.context)


def own_pod(resolution: JobResolution) -> dict[str, Tree]:
    """Return the spec of the pod without what the fields about pods add."""
    spec, weights = resolution.spec, resolution.weights
    build, context = resolution.build, resolution.context
    init = [*build_gate(build, context), *weights.init, *resolution.datasets.init]
    init += input_containers(resolution)
    claims: Tree = [{"name": "gpus", "resourceClaimTemplateName": Release("-gpus")}]
    return {
        "restartPolicy": "Never",
        **account_fields(spec),
        **({"serviceAccountName": gate_account(spec)} if build is not None else {}),
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
        mounts.append({"name": resolution.naming.volume, "mountPath": output.mount_path})
    mounts += params_of(resolution).mounts()
    volume = own_volume(resolution)
    if inputs and volume:
        # The container runtime creates the folder of a Dataset in the volume.
        read_only = {} if resolution.datasets.mounts else {"readOnly": True}
        mounts.append({"name": volume, "mountPath": inputs.mount_path, **read_only})
    mounts += resolution.datasets.mounts
    mounts.append({"name": SCRATCH, "mountPath": resolution.scratch_folder})
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
    if resolution.build is not None:
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
    spec, resources = resolution.spec, resolution.resources
    image, image_origin = _image(resolution)
    return {
        "name": resolution.naming.container,
        **image_fields(image, "", image_origin),
        **entry_point(spec.command, resolution.arguments),
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
    defaults = node_defaults(resolution)
    variables += [{"name": name, "value": value} for name, value in defaults.items() if name not in spec.env]
    variables += variables_of(spec.env)
    if spec.shards > 1:
        variables.append({"name": SHARDS, "value": str(spec.shards)})
    return [*variables, *params_of(resolution).variables(), *node_variables(resolution)]
