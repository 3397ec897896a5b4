"""Resources of pods that run a program of the user's."""

from __future__ import annotations

from kaigen.compile.builders.pods import ResolvedResources, default_shared_memory, gpu_count, resolve_resources
from kaigen.compile.context import Context
from kaigen.kinds.block import replace_fields
from kaigen.kinds.blocks import Resources


def work_resources(
    resources: Resources, context: Context, *, shared_memory: bool = True, memory: str | None = None
) -> ResolvedResources:
    """Return the `resources` block of a program of the user's.

    Args:
        resources: the spec's block.
        context: its profile has the GPU labels of nodes.
        shared_memory: give pods with GPUs a larger `/dev/shm` than the container runtime's.
        memory: default memory; None for one that fits most programs.

    Raises:
        ProblemError: as for `resolve_resources`.
    """
    gpus = gpu_count(resources)
    cpu, usual = ("4", "16Gi") if gpus else ("1", "4Gi")
    if gpus and resources.shared_memory is None and shared_memory:
        resources = replace_fields(resources, shared_memory=default_shared_memory(gpus))
    return resolve_resources(resources, context, cpu=cpu, memory=memory or usual)
