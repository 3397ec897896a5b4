"""Resources of each pod of a Topology: GPUs, CPU, memory and scratch space."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kaigen.compile.builders.pods import ResolvedResources, extra_devices, resolve_resources
from kaigen.compile.context import Context
from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.launch import Parallelism
from kaigen.compile.known_model import KnownModel
from kaigen.compile.problems import Problems
from kaigen.compile.topology.sizing import Sizing
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import replace_fields
from kaigen.kinds.blocks import GpuShare, Resources
from kaigen.kinds.serving import ServedModel
from kaigen.kinds.topology import TopologySpec
from kaigen.kubernetes.quantities import units
from kaigen.sizing.constants import GIB
from kaigen.sizing.host import HostPart, in_gib
from kaigen.sizing.ring import memory_request

SCRATCH_GIB = 20
"""Room of a pod for what the engine writes besides weights, such as compiled kernels and temporary files."""


def pod_gpus(spec: TopologySpec, engine: Engine, sizing: Sizing) -> int:
    """Return the GPUs of one pod: the spec's, else the plan's, the instance type's or the engine's default."""
    default = engine.default_gpus
    if sizing.plan is not None:
        default = sizing.plan.gpus_per_node
    elif sizing.instance is not None:
        default = sizing.instance.count
    return _requested_gpus(spec.resources, default)


def _requested_gpus(resources: Resources, default: int) -> int:
    gpus = resources.gpus
    if isinstance(gpus, GpuShare):
        return gpus.count
    if gpus is None:
        return 1 if resources.gpu_type is not None else default
    return gpus


def pod_resources(
    spec: TopologySpec,
    engine: Engine,
    sizing: Sizing,
    parallelism: Parallelism,
    context: Context,
    *,
    worker: bool = False,
) -> ResolvedResources:
    """Return the resources of one pod.

    Args:
        spec: the spec.
        engine: the engine, which decides the defaults.
        sizing: preset, instance type and plan.
        parallelism: how one replica uses GPUs and nodes.
        context: what it is compiled for.
        worker: whether it is the pod of a worker in a ring.

    Raises:
        ProblemError: a node cannot have as much.
    """
    gpus, nodes = parallelism.gpus, parallelism.nodes
    resources = spec.resources
    instance = sizing.instance
    if instance is not None and gpus > instance.count:
        raise ProblemError(
            "KG0344",
            f"`resources` asks for {gpus} GPUs on nodes that have {instance.count}",
            ("spec", "resources", "gpus"),
            "use several nodes with `shape.nodes`, or a larger `instanceType`",
        )
    update: dict[str, Any] = {}
    if resources.gpus is None and gpus:
        update["gpus"] = gpus
    model = hub_model(spec, sizing)
    if model is not None and resources.ephemeral_storage is None and spec.storage is None:
        # What is pulled into scratch space counts as the pod's; room for it must be on the node.
        update["ephemeral_storage"] = f"{-(-model.weights_bytes * 11 // (10 * GIB)) + SCRATCH_GIB}Gi"
    parts = engine.host_parts(spec, parallelism)
    if resources.shared_memory is None:
        devices = gpus or extra_devices(resources, context.catalog)
        update["shared_memory"] = shared_memory(engine, devices, parts) or None
    weights_bytes = sizing.model.weights_bytes if sizing.model is not None else 0
    cpus, gib = engine.default_resources(gpus, -(-weights_bytes // nodes))
    ring, memory = sizing.ring, f"{gib + in_gib(parts)}Gi"
    if ring is not None and ring.shape is not None:
        memory = memory_request(ring.worker if worker else ring.root)
    return resolve_resources(
        replace_fields(resources, **update),
        context,
        cpu=str(cpus),
        memory=memory,
        resource=instance.gpu.resource if instance is not None else "",
    )


def shared_memory(engine: Engine, gpus: int, parts: Iterable[HostPart]) -> str:
    """Return the size of `/dev/shm` with the parts that flags put there; empty for the container runtime's default."""
    own, flags = engine.shared_memory(gpus), in_gib(part for part in parts if part.shared)
    return f"{(units(own) or 0) // GIB + flags}Gi" if flags else own


def check_host_memory(spec: TopologySpec, engine: Engine, parallelism: Parallelism, problems: Problems) -> None:
    """Report sizes of a spec that are smaller than what its flags reserve."""
    parts = engine.host_parts(spec, parallelism)
    shared = tuple(part for part in parts if part.shared)
    resources = spec.resources
    for name, size, inside, place in (
        ("sharedMemory", resources.shared_memory, shared, "`/dev/shm`"),
        ("memory", resources.memory, parts, "the pod"),
    ):
        given = units(size) if size is not None else None
        if inside and given is not None and given < sum(part.gib for part in inside) * GIB:
            flags = " and ".join(f"`{part.flag}`" for part in inside)
            least = in_gib(inside) + (units(engine.shared_memory(parallelism.gpus)) or 0) // GIB
            problems.error(
                "KG0370",
                f"{flags} reserve{'s' if len(inside) == 1 else ''} {in_gib(inside)} GiB, and {place} has {size}",
                ("spec", "resources", name),
                f"leave it out, or use at least {least}Gi",
            )


def check_weights_in_memory(
    spec: TopologySpec, engine: Engine, parallelism: Parallelism, sizing: Sizing, problems: Problems
) -> None:
    """Report a pod without GPUs whose memory is smaller than its share of the weights, which the engine keeps there."""
    size, model = units(spec.resources.memory or ""), sizing.model
    if parallelism.gpus or size is None or model is None or not engine.reads_presets or spec.quantization:
        return
    # Weights in float32 are loaded as half of it.
    weights = model.facts.weights / parallelism.nodes / (2 if model.facts.dtype == "float32" else 1)
    if size < weights * GIB:
        _, least = engine.default_resources(0, int(weights * GIB))
        problems.error(
            "KG1105",
            f"{model.name} does not fit into {spec.resources.memory}: its weights have {weights:.1f} GiB",
            ("spec", "resources", "memory"),
            f"leave it out for {least}Gi, with room for the KV cache",
        )


def hub_model(spec: TopologySpec, sizing: Sizing) -> KnownModel | None:
    """Return the model that each pod pulls from the Hub; None when it pulls none, or an unknown one."""
    pulls = spec.model is None or (isinstance(spec.model, ServedModel) and spec.model.hugging_face is not None)
    return sizing.model if pulls else None
