"""The pod of a Job."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.builders import settings
from kaigen.compile.builders.access import account_fields
from kaigen.compile.builders.pod_options import extended_pod
from kaigen.compile.builders.pods import (
    SCRATCH,
    container_security,
    entry_point,
    image_fields,
    pull_secrets,
    scratch_volume,
    shared_memory_volume,
)
from kaigen.compile.builders.variables import variables_of
from kaigen.compile.builders.weights import inputs_container
from kaigen.compile.expressions import Expr, Item, JsonText, Release, Setting, Text, Tree
from kaigen.compile.field_expressions import ContentName
from kaigen.compile.job.nodes import node_defaults, node_variables, subdomain
from kaigen.compile.job.resolution import JobResolution
from kaigen.kinds.blocks import Image
from kaigen.kinds.job import Inputs, ModelUse

FETCH_INPUTS = "fetch-inputs"
_PARAMS_FOLDER = "/etc/kaigen"


def pod_spec(resolution: JobResolution) -> dict[str, Tree]:
    """Return the spec of the pod."""
    return extended_pod(own_pod(resolution), resolution.spec, resolution.context)


def own_pod(resolution: JobResolution) -> dict[str, Tree]:
    """Return the spec of the pod without what the fields about pods add."""
    spec, inputs, weights = resolution.spec, resolution.inputs, resolution.weights
    init = [*([weights.init] if weights else []), *([_inputs(resolution, inputs)] if inputs else [])]
    transfers = [use.transfer for use in (spec.model, inputs) if isinstance(use, ModelUse | Inputs)]
    transfer_images = [transfer.image for transfer in transfers if transfer.image]
    claims: Tree = [{"name": "gpus", "resourceClaimTemplateName": Release("-gpus")}]
    return {
        "restartPolicy": "Never",
        **account_fields(spec),
        "enableServiceLinks": False,
        "imagePullSecrets": settings.objects(
            "imagePullSecrets",
            pull_secrets(_image(resolution), *transfer_images, spec=spec),
            "Secrets for pulling the images.",
            origin=("spec", "image"),
        ),
        **resolution.scheduling,
        **subdomain(resolution),
        "securityContext": dict(resolution.security),
        **({"resourceClaims": claims} if resolution.resources.device_class else {}),
        **({"initContainers": init} if init else {}),
        "containers": [_container(resolution)],
        "volumes": _volumes(resolution),
    }


def params_setting(resolution: JobResolution) -> Setting:
    """Return the setting of the parameters."""
    params = dict(resolution.spec.params)
    schema = {"type": "object", "required": sorted(params), "additionalProperties": True}
    return Setting("params", params, "Parameters of the Job.", schema, origin=("spec", "params"))


def params_name(resolution: JobResolution) -> Expr:
    """Return the name of the ConfigMap with the parameters: another one for each run, whose pods read it as a file."""
    return ContentName("-params", JsonText(params_setting(resolution)))


def container_mounts(resolution: JobResolution) -> list[Mapping[str, Tree]]:
    """Return the volume mounts of the container."""
    weights, output, inputs = resolution.weights, resolution.output, resolution.inputs
    mounts: list[Mapping[str, Tree]] = [*(weights.mounts if weights else [])]
    if output:
        mounts.append({"name": resolution.naming.volume, "mountPath": output.mount_path})
    if resolution.spec.params:
        mounts.append({"name": "params", "mountPath": _PARAMS_FOLDER, "readOnly": True})
    if inputs:
        mounts.append({"name": "inputs", "mountPath": inputs.mount_path, "readOnly": True})
    mounts.append({"name": SCRATCH, "mountPath": resolution.scratch_folder})
    if resolution.resources.shared_memory:
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    return mounts


def _volumes(resolution: JobResolution) -> list[Tree]:
    weights, resources, naming = resolution.weights, resolution.resources, resolution.naming
    volumes: list[Tree] = [*(weights.volumes if weights else [])]
    if resolution.output:
        claim = Release(resolution.output_suffix)
        volumes.append({"name": naming.volume, "persistentVolumeClaim": {"claimName": claim}})
    if resolution.spec.params:
        volumes.append({"name": "params", "configMap": {"name": params_name(resolution)}})
    if resolution.inputs:
        volumes.append(scratch_volume(resources.scratch_limit, "inputs"))
    volumes.append(scratch_volume(resources.scratch_limit))
    if resources.shared_memory:
        volumes.append(shared_memory_volume(resources.shared_memory))
    return volumes


def _image(resolution: JobResolution) -> Image:
    assert (
        resolution.spec.image is not None
    )  # Without an image there is a template, and no container of kaigen's.
    return resolution.spec.image


def _container(resolution: JobResolution) -> dict[str, Tree]:
    spec, resources = resolution.spec, resolution.resources
    read_only = spec.security.read_only_root_filesystem
    return {
        "name": resolution.naming.container,
        **image_fields(_image(resolution), "", ("spec", "image")),
        **entry_point(spec.command, spec.args),
        "env": _environment(resolution),
        "resources": Setting(
            "resources",
            resources.requirements,
            "Resources of the container.",
            settings.RESOURCES,
            origin=("spec", "resources"),
        ),
        "securityContext": container_security(
            read_only=not resources.has_gpu if read_only is None else read_only
        ),
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
    params = params_setting(resolution)
    for name in spec.params:
        variables.append({"name": f"PARAM_{name.upper()}", "value": Text(Item(params, name), verbatim=True)})
    return [*variables, *node_variables(resolution)]


def _inputs(resolution: JobResolution, inputs: Inputs) -> dict[str, Tree]:
    """Return the container that fetches the inputs."""
    long = isinstance(resolution.spec.inputs, Inputs)
    return inputs_container(
        inputs.files,
        inputs.transfer,
        resolution.context,
        name=FETCH_INPUTS,
        destination=inputs.mount_path,
        mounts=[{"name": "inputs", "mountPath": inputs.mount_path}],
        origin=("spec", "inputs", "transfer") if long else (),
    )
