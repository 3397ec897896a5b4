"""Pods: hardened by default, with scratch space and resource requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import get_gpu, gpu_hint, is_gpu_resource
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.node_affinity import Term, gpu_node_terms, label_term, with_node_terms
from kaigen.compile.context import Context
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.field_expressions import Items, Spread
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.blocks import GpuShare, Image, ImageBlock, Placement, PodUser, Resources, Security
from kaigen.kinds.pod import PodFields
from kaigen.kubernetes.pod_security import BASELINE_CAPABILITIES
from kaigen.kubernetes.quantities import units

DEFAULT_USER = 65532
"""Default user id: the "nonroot" of the distroless images."""

SCRATCH = "scratch"

BUILT: FieldPath = ("spec", "build", "repository")
"""The spec's field of an image that the app builds."""

_CAPABILITIES: FieldPath = ("spec", "security", "capabilities")


NO_NETWORK: Mapping[str, Tree] = {"envFrom": Items(None, (), None)}
"""Fields of a container of kaigen's that connects to nothing outside the cluster, so that it needs no proxies.

An empty list with settings is left out of the object.
"""


def image_ref(image: Image) -> str:
    """Return the image's reference, from either form."""
    return image.ref if isinstance(image, ImageBlock) else image


def image_fields(image: Image, prefix: str, origin: FieldPath) -> dict[str, Tree]:
    """Return `image` and `imagePullPolicy` of a container, as settings under `prefix`."""
    block = image if isinstance(image, ImageBlock) else None
    return {
        "image": settings.image(
            f"{prefix}image", image_ref(image), "Container image.", origin=(*origin, "ref") if block else origin
        ),
        "imagePullPolicy": Setting(
            f"{prefix}imagePullPolicy",
            (block and block.pull_policy) or "",
            "When to pull the image; empty for the Kubernetes default.",
            settings.PULL_POLICY,
            optional=True,
            origin=(*origin, "pullPolicy") if origin and origin != BUILT else (),
        ),
    }


def pull_secrets(*images: Image, spec: PodFields) -> list[Mapping[str, str]]:
    """Return `imagePullSecrets` of a pod with these images and those of a spec's containers."""
    added = [each.image for each in (*spec.sidecars.values(), *spec.init_containers.values())]
    blocks = [image for image in (*images, *added) if isinstance(image, ImageBlock)]
    names = [*(name for block in blocks for name in block.pull_secrets), *spec.image_pull_secrets]
    return [{"name": name} for name in dict.fromkeys(each.name for each in names)]


def container_security(*, read_only: bool, capabilities: Sequence[str] = ()) -> dict[str, Tree]:
    """Return a container's security context, as Pod Security "restricted" requires it, with these capabilities."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": read_only,
        "capabilities": {"drop": ["ALL"], **({"add": sorted(capabilities)} if capabilities else {})},
    }


def main_container_security(security: Security, resources: ResolvedResources) -> dict[str, Tree]:
    """Return the security context of the container that a spec's `security` is about."""
    read_only = security.read_only_root_filesystem
    return container_security(
        read_only=not resources.has_gpu if read_only is None else read_only, capabilities=security.capabilities
    )


def check_capabilities(security: Security, problems: Problems) -> None:
    """Report capabilities that the processes would not get, or that the Pod Security level forbids."""
    user, level = security.run_as_user, security.pod_security
    if not security.capabilities:
        return
    if user or (user is None and level == "restricted"):
        hint = "set `runAsUser: 0` and `podSecurity: baseline`, or leave it out"
        report_ignored_field(problems, "capabilities", _CAPABILITIES, "for a user other than root", hint)
        return
    for index, name in enumerate(security.capabilities):
        if level != "privileged" and name not in BASELINE_CAPABILITIES:
            problems.error(
                "KG0305",
                f"Pod Security `{level}` forbids the capability {name}",
                (*_CAPABILITIES, index),
                "set `podSecurity: privileged`, or leave it out",
            )


def pod_security(security: PodUser) -> dict[str, Tree]:
    """Return a pod's security context. With `baseline` and no user, the image's own user runs.

    Raises:
        ProblemError: the user is root under `restricted`.
    """
    user, group = security.run_as_user, security.fs_group
    if security.pod_security == "restricted":
        if user == 0:
            raise ProblemError(
                "KG0305",
                "user id 0 is root, which Pod Security `restricted` forbids",
                ("spec", "security", "runAsUser"),
                "set another user, or `podSecurity: baseline`",
            )
        user = DEFAULT_USER if user is None else user
    context: dict[str, Tree] = {"runAsNonRoot": True} if user != 0 and security.pod_security == "restricted" else {}
    if user is not None:
        context |= {"runAsUser": user, "runAsGroup": user}
    group = user if group is None else group
    if group is not None:
        context |= {"fsGroup": group, "fsGroupChangePolicy": "OnRootMismatch"}
    return {**context, "seccompProfile": {"type": "RuntimeDefault"}}


class ResolvedResources(Struct, frozen=True):
    """A `resources` block in the terms of Kubernetes.

    Attributes:
        requirements: the container's `resources`.
        node_selector: labels that a node must have.
        tolerations: tolerations of GPU pods.
        runtime_class: RuntimeClass of GPU pods; empty for none.
        device_class: DeviceClass that the pod claims from; empty for none.
        device_count: number of devices.
        has_gpu: whether the container has a GPU.
        devices: number of other accelerators, such as TPUs.
        shared_memory: size of `/dev/shm`; empty for the container runtime's default.
        scratch_limit: limit of the scratch volume; empty for none.
        node_terms: terms of which a node must fulfill one; empty for any node.
    """

    requirements: dict[str, Any]
    node_selector: dict[str, str]
    tolerations: list[Mapping[str, Any]]
    runtime_class: str
    device_class: str
    device_count: int
    has_gpu: bool
    shared_memory: str
    scratch_limit: str
    node_terms: tuple[Term, ...] = ()
    devices: int = 0


NO_RESOURCES = ResolvedResources({}, {}, [], "", "", 0, False, "", "")
"""In place of resources that could not be resolved."""


def resolve_resources(
    resources: Resources,
    context: Context,
    *,
    cpu: str,
    memory: str,
    origin: FieldPath = ("spec", "resources"),
    resource: str = "",
) -> ResolvedResources:
    """Return a `resources` block in the terms of Kubernetes.

    Args:
        resources: the spec's block.
        context: its profile has the GPU labels of nodes.
        cpu: default CPU request.
        memory: default memory request and limit.
        origin: the spec's field of the block.
        resource: extended resource of GPUs without a `gpuType`; NVIDIA's when empty.

    Raises:
        ProblemError: the GPU type is unknown, or the profile's nodes have no label for it.
    """
    profile = context.profile
    selector: dict[str, str] = {}
    terms: tuple[Term, ...] = ()
    resource = resource or "nvidia.com/gpu"
    if resources.gpu_type is not None:
        gpu = get_gpu(resources.gpu_type, context.catalog)
        where = (*origin, "gpuType")
        if gpu is None:
            name = resources.gpu_type
            raise ProblemError("KG0306", f"unknown GPU type `{name}`", where, gpu_hint(name, context.catalog))
        resource = gpu.resource
        node_labels = profile.labels_of(gpu.labels)
        if not node_labels:
            raise ProblemError(
                "KG0307",
                f"nodes of profile `{profile.name}` have no label for {gpu.name}",
                where,
                "leave `gpuType` out and select the nodes with `placement.nodeSelector`",
            )
        if profile.gpu_instance_types:
            terms = gpu_node_terms(gpu, _gpu_count(resources), context)
        else:
            selector |= node_labels
    if resources.instance_type is not None:
        selector["node.kubernetes.io/instance-type"] = resources.instance_type

    requests: dict[str, Any] = {"cpu": resources.cpu or cpu, "memory": resources.memory or memory}
    limits: dict[str, Any] = {"memory": resources.memory or memory}
    if resources.ephemeral_storage:
        requests["ephemeral-storage"] = limits["ephemeral-storage"] = resources.ephemeral_storage
    device_class, device_count, has_gpu = "", 0, False
    gpus = resources.gpus
    if gpus is None and resources.gpu_type is not None:
        gpus = 1
    if isinstance(gpus, GpuShare):
        has_gpu = True
        if gpus.profile is not None:
            slices, labels = profile.slice_request(gpus.profile, gpus.count)
            requests |= slices
            limits |= slices
            selector |= labels
        else:
            assert gpus.device_class_name is not None
            device_class, device_count = gpus.device_class_name, gpus.count
    elif gpus:
        has_gpu = True
        requests[resource] = limits[resource] = gpus
    for name, amount in resources.extra.items():
        if name in requests:
            message = f"`{name}` is requested by `gpus` already"
            raise ProblemError("KG0325", message, (*origin, "extra", name), "leave it out")
        requests[name] = limits[name] = amount
    requirements: dict[str, Any] = {"requests": requests, "limits": limits}
    if device_class:
        requirements["claims"] = [{"name": "gpus"}]
    return ResolvedResources(
        requirements=requirements,
        node_selector=selector,
        tolerations=list(profile.gpu_tolerations) if has_gpu else [],
        runtime_class=profile.gpu_runtime_class if has_gpu else "",
        device_class=device_class,
        device_count=device_count,
        has_gpu=has_gpu,
        shared_memory=resources.shared_memory or "",
        scratch_limit=resources.ephemeral_storage or "",
        node_terms=terms,
        devices=extra_devices(resources, context.catalog),
    )


def extra_devices(resources: Resources, catalog: Catalog) -> int:
    """Return the accelerators among the further resources of a `resources` block, such as TPUs."""
    return sum(units(amount) or 0 for name, amount in resources.extra.items() if is_gpu_resource(name, catalog))


def _gpu_count(resources: Resources) -> int:
    """Return how many GPUs a node must have."""
    return 1 if resources.gpus is None or isinstance(resources.gpus, GpuShare) else max(1, resources.gpus)


def placement_fields(
    frame: Frame,
    placement: Placement,
    context: Context,
    resources: ResolvedResources | None,
    origin: FieldPath = ("spec", "placement"),
) -> dict[str, Tree]:
    """Return a pod's scheduling fields, as settings.

    Args:
        frame: the app.
        placement: the spec's block.
        context: its profile has labels and taints of spot nodes.
        resources: resources of the pod; None for a pod without devices.
        origin: the spec's field of the block.

    Raises:
        ProblemError: the profile has no spot nodes.
    """
    selector = dict(resources.node_selector) if resources else {}
    tolerations = list(resources.tolerations) if resources else []
    labels = {label for group in context.profile.gpu_labels for label in group} & selector.keys()
    terms = list(resources.node_terms) if resources else []
    affinity = with_node_terms(placement.affinity or {}, resources.node_terms if resources else ())
    if placement.spot:
        spot = context.profile.spot
        if spot is None:
            raise ProblemError(
                "KG0308",
                f"profile `{context.profile.name}` has no spot nodes",
                (*origin, "spot"),
                "select spot nodes with `nodeSelector` and `tolerations`, or choose aks, eks or gke in kaigen.yaml",
            )
        selector |= spot.node_selector
        labels |= spot.node_selector.keys()
        terms += [label_term(each) for each in spot.node_labels]
        affinity = with_node_terms(affinity, [label_term(each) for each in spot.node_labels])
        tolerations += spot.tolerations
    by_profile = {
        "nodeSelector": bool(labels - placement.node_selector.keys()),
        "tolerations": any(each not in placement.tolerations for each in tolerations),
        "affinity": bool(terms),
        "runtimeClassName": placement.runtime_class_name is None and bool(resources and resources.runtime_class),
    }
    selector |= placement.node_selector
    tolerations += [each for each in placement.tolerations if each not in tolerations]
    runtime_class = placement.runtime_class_name
    if runtime_class is None:
        runtime_class = resources.runtime_class if resources else ""
    fields: dict[str, Tree] = {
        "runtimeClassName": settings.text(
            "runtimeClassName",
            runtime_class,
            "RuntimeClass of the pods; empty for the cluster's default.",
            optional=True,
            origin=(*origin, "runtimeClassName"),
        ),
        "priorityClassName": settings.text(
            "priorityClassName",
            placement.priority_class_name or "",
            "PriorityClass of the pods.",
            optional=True,
            origin=(*origin, "priorityClassName"),
        ),
        **(
            {
                "schedulerName": settings.text(
                    "schedulerName",
                    placement.scheduler_name,
                    "Scheduler of the pods.",
                    origin=(*origin, "schedulerName"),
                )
            }
            if placement.scheduler_name
            else {}
        ),
        "nodeSelector": settings.string_map(
            "nodeSelector", selector, "Labels that a node must have to run the pods.", origin=(*origin, "nodeSelector")
        ),
        "tolerations": settings.objects(
            "tolerations", tolerations, "Tolerations of the pods.", origin=(*origin, "tolerations")
        ),
        "affinity": Setting(
            "affinity", affinity, "Affinity of the pods.", settings.OBJECT, optional=True, origin=(*origin, "affinity")
        ),
        "topologySpreadConstraints": Spread(
            settings.objects(
                "topologySpreadConstraints",
                placement.topology_spread,
                "Topology spread constraints of the pods; a missing labelSelector selects the app's own pods.",
                origin=(*origin, "topologySpread"),
            ),
            frame.release_selector(),
        ),
    }
    for name, decided in by_profile.items():
        setting = fields[name]
        assert isinstance(setting, Setting)
        fields[name] = replace(setting, by_profile=decided)
    return fields


def entry_point(command: Sequence[str] | None, args: Sequence[str] | None) -> dict[str, Tree]:
    """Return `command` and `args` of a container; the image's own where the spec has none."""
    words = {
        "command": (command, "Entry point; empty for the image's."),
        "args": (args, "Arguments of the entry point; empty for the image's."),
    }
    return {
        name: settings.strings(name, list(given or []), doc, optional=True, origin=("spec", name))
        for name, (given, doc) in words.items()
    }


def scratch_volume(limit: str = "", name: str = SCRATCH) -> dict[str, Tree]:
    """Return a scratch volume of the pod."""
    return {"name": name, "emptyDir": {"sizeLimit": limit} if limit else {}}


def gpu_count(resources: Resources) -> int:
    """Return the GPUs, slices or devices that a `resources` block asks for: one where it only names a type."""
    gpus = resources.gpus
    if isinstance(gpus, GpuShare):
        return gpus.count
    if gpus is None:
        return 1 if resources.gpu_type is not None else 0
    return gpus


def default_shared_memory(gpus: int) -> str:
    """Return a size of `/dev/shm` that lets the processes of all GPUs of a pod exchange tensors."""
    return f"{2 * gpus if gpus > 1 else 1}Gi"


def shared_memory_volume(size: str) -> dict[str, Tree]:
    """Return the volume of `/dev/shm` with a size."""
    return {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}}
