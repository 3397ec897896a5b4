"""Resources of containers: those of a program of the user's, and GPUs through Dynamic Resource Allocation."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.pods import (
    ResolvedResources,
    default_shared_memory,
    extra_devices,
    gpu_count,
    resolve_resources,
)
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.kinds.block import replace_fields
from kaigen.kinds.blocks import Resources


def claim_template(frame: Frame, device_class: str, count: int, component: str = "run") -> Object:
    """Return the template of each pod's claim for `count` devices of a class.

    Argo CD does not know the defaults of this group, so the only way to allocate is written.
    """
    exactly: Tree = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    return Object(
        role="resourceclaimtemplate",
        body={
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": frame.metadata("-gpus", component),
            "spec": {
                "spec": {
                    "devices": {"requests": [{"name": "gpus", "exactly": exactly}]},
                }
            },
        },
    )


def work_resources(
    resources: Resources, context: Context, *, shared_memory: bool = True, memory: str | None = None
) -> ResolvedResources:
    """Return the `resources` block of a program of the user's.

    Args:
        resources: the spec's block.
        context: its profile has the GPU labels of nodes.
        shared_memory: give pods with GPUs or other accelerators a larger `/dev/shm` than the container runtime's.
        memory: default memory; None for one that fits most programs.

    Raises:
        ProblemError: as for `resolve_resources`.
    """
    gpus = gpu_count(resources)
    cpu, usual = ("4", "16Gi") if gpus else ("1", "4Gi")
    devices = gpus or extra_devices(resources, context.catalog)
    if devices and resources.shared_memory is None and shared_memory:
        resources = replace_fields(resources, shared_memory=default_shared_memory(devices))
    return resolve_resources(resources, context, cpu=cpu, memory=memory or usual)
