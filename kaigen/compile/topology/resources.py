"""What each pod of a Topology is given: GPUs, CPU, memory and room on the node's disk."""

from __future__ import annotations

from typing import Any

from kaigen.compile.builders.pods import Granted, grant
from kaigen.compile.context import Context
from kaigen.compile.topology.parallel import gpus_of
from kaigen.compile.topology.sizing import GIB, Sized, preset_bytes
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.serving import ServedModel
from kaigen.kinds.topology import TopologySpec


def pod_gpus(spec: TopologySpec, mode: str, sized: Sized) -> int:
    """Devices of one pod: those that are asked for, else the plan's, else the instance type's, else vLLM's one.

    Args:
        spec: the spec.
        mode: name of the engine, or `template`.
        sized: what the catalogues say of it.
    """
    default = 1 if mode == "vllm" else 0
    if sized.plan is not None:
        default = sized.plan.gpus_per_node
    elif sized.instance is not None and mode != "template":
        default = sized.instance.count
    return gpus_of(spec.resources, default)


def granted_resources(spec: TopologySpec, mode: str, sized: Sized, gpus: int, context: Context) -> Granted:
    """What the resources of a pod come to, those among it that the spec leaves open.

    Args:
        spec: the spec.
        mode: name of the engine, or `template`.
        sized: what the catalogues say of it.
        gpus: devices of one pod.
        context: what it is compiled for.

    Raises:
        ProblemError: when a node cannot have as much.
    """
    resources = spec.resources
    instance = sized.instance
    if instance is not None and gpus > instance.count:
        raise ProblemError(
            "KG0344",
            f"{gpus} GPUs are asked for of nodes that have {instance.count}",
            ("spec", "resources", "gpus"),
            "spread it over several nodes with `shape.nodes`, or take a larger `instanceType`",
        )
    update: dict[str, Any] = {}
    if resources.gpus is None and gpus:
        update["gpus"] = gpus
    pulled = _pulled_size(spec, sized)
    if pulled and resources.ephemeral_storage is None and spec.storage is None:
        # What is pulled into scratch space counts as the pod's; room for it must be on the node.
        update["ephemeral_storage"] = f"{-(-pulled * 11 // (10 * GIB)) + 20}Gi"
    if mode == "vllm" and resources.shared_memory is None:
        update["shared_memory"] = f"{2 * gpus if gpus > 1 else 1}Gi"
    cpu, memory = _defaults(mode, sized, gpus)
    resource = instance.gpu.resource if instance is not None else ""
    return grant(resources.model_copy(update=update), context, cpu=cpu, memory=memory, resource=resource)


def _pulled_size(spec: TopologySpec, sized: Sized) -> int:
    """Bytes that each pod pulls from the Hub, as far as they are known."""
    pulls = spec.model is None or (
        isinstance(spec.model, ServedModel) and spec.model.hugging_face is not None
    )
    return preset_bytes(sized.preset) if sized.preset is not None and pulls else 0


def _defaults(mode: str, sized: Sized, gpus: int) -> tuple[str, str]:
    """CPU and memory where the spec names none: little enough for the smallest nodes with such GPUs."""
    if gpus:
        cpu, memory = 2 * gpus, 12 if gpus == 1 else 16 * gpus
    else:
        cpu, memory = (4, 16) if mode == "vllm" else (2, 8)
    if mode == "transformers" and sized.preset is not None:
        # kaigen's server has all weights in memory before a GPU has them.
        memory = max(memory, -(-preset_bytes(sized.preset) * 11 // (10 * GIB)) + 4)
    return str(cpu), f"{memory}Gi"
