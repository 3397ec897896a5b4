"""Possible layouts of a replica, and their order of preference."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from kaigen.sizing.constants import constant
from kaigen.sizing.facts import Hardware, ModelFacts, Request
from kaigen.sizing.memory import GpuMemory, Layout
from kaigen.sizing.problem import Field, PlanError


def splits(facts: ModelFacts, tp: int) -> bool:
    """Return whether a tensor parallel group of that size is possible.

    It must divide the attention heads; and divide the heads of keys and values, or be a multiple of them, in which
    case the engine gives each to several GPUs. MLA keeps no such heads.
    """
    if facts.heads % tp:
        return False
    return bool(facts.latent_dim) or facts.kv_heads % tp == 0 or tp % facts.kv_heads == 0


def check_overrides(facts: ModelFacts, request: Request, hardware: Hardware) -> None:
    """Raise an error for overrides that no amount of memory makes possible.

    Raises:
        PlanError: names what is possible.
    """
    tp, pp, dp, nodes = (request.tensor_parallel, request.pipeline_parallel, request.data_parallel, request.nodes)
    for field, value in (
        (Field.TENSOR_PARALLEL, tp),
        (Field.PIPELINE_PARALLEL, pp),
        (Field.DATA_PARALLEL, dp),
        (Field.NODES, nodes),
        (Field.REPLICAS, request.replicas),
    ):
        if value is not None and value < 1:
            raise PlanError("KG1106", field, f"{field.value} is {value}", "use at least 1")
    if tp is not None and not splits(facts, tp):
        possible = ", ".join(str(size) for size in range(1, max(hardware.count, 8) + 1) if splits(facts, size))
        raise PlanError(
            "KG1106",
            Field.TENSOR_PARALLEL,
            f"{tp} GPUs cannot share the {facts.heads} attention heads and {facts.kv_heads} KV heads of {facts.name}",
            f"possible: {possible}",
        )
    if pp is not None and pp > facts.layers:
        raise PlanError(
            "KG1106", Field.PIPELINE_PARALLEL, f"{facts.name} has only {facts.layers} layers for {pp} stages"
        )
    if hardware.mig and (tp or 1) * (pp or 1) * (dp or 1) > 1:
        raise PlanError(
            "KG1106",
            Field.TENSOR_PARALLEL
            if (tp or 1) > 1
            else Field.PIPELINE_PARALLEL
            if (pp or 1) > 1
            else Field.DATA_PARALLEL,
            "MIG slices cannot share a model",
            "request a larger slice, or whole GPUs",
        )
    if nodes is not None and pp is not None and pp < nodes and (tp or 1) <= hardware.count:
        raise PlanError(
            "KG1106",
            Field.NODES,
            f"{pp} pipeline stages cannot use {nodes} nodes",
            f"use at most {pp} nodes, and `replicas` for further copies",
        )
    if nodes is not None and nodes > 1 and dp is not None and dp > 1:
        raise PlanError(
            "KG1106",
            Field.DATA_PARALLEL,
            f"{dp} copies of the model cannot span {nodes} nodes",
            "use `replicas` for further copies",
        )


def layouts(facts: ModelFacts, request: Request, hardware: Hardware, nodes: int) -> Iterator[Layout]:
    """Yield every layout of a replica on that many nodes that the request allows."""
    count = hardware.count
    wide = request.tensor_parallel is not None and request.tensor_parallel > count
    sizes = range(1, count + 1) if request.tensor_parallel is None else (request.tensor_parallel,)
    for tp in sizes:
        if not splits(facts, tp):
            continue
        if wide:
            # Only on request: layers shared by several nodes. Whole nodes, so that stages do not cross node boundaries.
            if tp % count or nodes % (tp // count):
                continue
            yield from _fitting_layouts(request, facts, Layout(nodes, tp, nodes // (tp // count), 1))
        elif nodes == 1:
            for pp in range(1, min(count // tp, facts.layers) + 1):
                for dp in range(1, count // (tp * pp) + 1):
                    yield from _fitting_layouts(request, facts, Layout(1, tp, pp, dp))
        else:
            for stages in range(1, count // tp + 1):
                yield from _fitting_layouts(request, facts, Layout(nodes, tp, nodes * stages, 1))


def _fitting_layouts(request: Request, facts: ModelFacts, layout: Layout) -> Iterator[Layout]:
    if (
        layout.pp <= facts.layers
        and request.pipeline_parallel in (None, layout.pp)
        and request.data_parallel in (None, layout.dp)
    ):
        yield layout


def most_nodes(facts: ModelFacts, request: Request, hardware: Hardware) -> int:
    """Return the number of nodes above which more do not help."""
    if hardware.mig or request.data_parallel not in (None, 1):
        return 1
    stages = request.pipeline_parallel or facts.layers
    across = max(1, ceil((request.tensor_parallel or 1) / hardware.count))
    return stages * across


def preference(layout: Layout, memory: GpuMemory, hardware: Hardware) -> tuple[int, ...]:
    """Return a sort key of layouts on the same number of nodes, best first.

    No GPU idle; then few pipeline stages within a node; then copies of the model where its weights leave room for
    them, else layers that are shared by as many GPUs as possible.
    """
    idle = layout.nodes * hardware.count - layout.gpus
    roomy = memory.weights <= constant("roomyWeightShare") * memory.budget
    if layout.nodes > 1:
        return (idle, -layout.tp, layout.pp)
    return (idle, layout.pp, not roomy, layout.tp if roomy else -layout.tp)
