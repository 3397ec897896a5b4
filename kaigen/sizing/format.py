"""Plans as table rows and as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.core.json_types import Json
from kaigen.core.text import plural

if TYPE_CHECKING:
    from kaigen.sizing.plan import Plan
    from kaigen.sizing.ranking import Ranking


class Row(Struct, frozen=True):
    """One row of the memory of a GPU.

    Attributes:
        name: of the row.
        gib: memory of the fullest GPU.
        how: derivation.
    """

    name: str
    gib: float
    how: str


def rows(plan: Plan) -> list[Row]:
    """Return the memory of the fullest GPU, row by row."""
    facts, memory, layout, load = plan.facts, plan.memory, plan.layout, plan.load
    shared = [f"{layout.tp} GPUs a layer"] if layout.tp > 1 else []
    shared += [f"{layout.pp} stages"] if layout.pp > 1 else []
    weights = f"{facts.weights:g} GiB"
    weights += f" × {load.engine.padding:g}" if load.engine.padding != 1 else ""
    weights += f", over {' and '.join(shared)}" if shared else ""
    each = -(-load.concurrency // layout.dp)
    bits = f", {load.kv_bits:g} bit" if load.kv_bits != 16 else ""
    bits += ", of both models" if load.draft else ""
    return [
        Row("weights", memory.weights, weights),
        *([Row("draft model", memory.draft, f"weights of {load.draft.facts.name}")] if load.draft else []),
        Row("KV cache", memory.kv_cache, f"{plural(load.context, 'token')} × {plural(each, 'sequence')}{bits}"),
        Row("runtime", memory.runtime, "CUDA context, graphs" + (", buffers between GPUs" if shared else "")),
        Row("activations", memory.activations, "one step" + (", logits, encoder" if facts.encoder else ", logits")),
        Row("needed", memory.needed, "together"),
        Row("budget", memory.budget, f"{memory.usable:.1f} usable × {load.utilization:g}"),
        Row("free", memory.free, "the engine adds it to the cache"),
    ]


def hardware_text(plan: Plan) -> str:
    """Return the name of the nodes with their GPUs."""
    hardware = plan.hardware
    return f"{hardware.name} ({hardware.count} × {hardware.gpu})" if hardware.instance else hardware.name


def price_text(plan: Plan) -> str:
    """Return the price of an hour of all nodes; empty when it is unknown."""
    hardware, nodes = plan.hardware, plan.total_nodes
    if hardware.price is None:
        return ""
    total = f"{nodes * hardware.price:,.2f} {hardware.currency} an hour"
    return total if nodes == 1 else f"{total}, {nodes} × {hardware.price:,.2f}"


def context_limit(plan: Plan) -> str:
    """Return what limits the context of a plan, to follow the number of tokens."""
    if plan.request.context_length is not None:
        return f", of {plan.max_context} that would fit"
    return ", the limit of the model" if plan.load.context == plan.facts.max_context else ", the longest that fits"


def command_line(plan: Plan) -> str:
    """Return the arguments of the engine."""
    return " ".join(f"--{name}={value}" for name, value in plan.flags)


def _gib(value: float) -> float:
    return round(value, 2)


def node_data(plan: Plan) -> dict[str, Json]:
    """Return the nodes of a plan as plain data."""
    hardware = plan.hardware
    return {
        "name": hardware.name,
        "instanceType": hardware.instance or None,
        "cloud": hardware.cloud or None,
        "gpu": hardware.gpu,
        "mig": hardware.mig or None,
        "gpus": hardware.count,
        "memoryGiB": hardware.nominal,
        "usableGiB": hardware.usable,
        "resource": hardware.resource,
        **({"pricePerHour": hardware.price, "currency": hardware.currency} if hardware.price is not None else {}),
    }


def layout_data(plan: Plan) -> dict[str, Json]:
    """Return the layout of a plan as plain data."""
    layout = plan.layout
    return {
        "nodes": layout.nodes,
        "gpusPerNode": plan.gpus_per_node,
        "tensorParallel": layout.tp,
        "pipelineParallel": layout.pp,
        "dataParallel": layout.dp,
    }


def plan_data(plan: Plan) -> dict[str, Json]:
    """Return a plan as plain data, with the memory of the fullest GPU in GiB."""
    facts, memory, load = plan.facts, plan.memory, plan.load
    return {
        "model": {"name": facts.name, "weightsGiB": facts.weights, "quantization": facts.quantization or None},
        "node": node_data(plan),
        "layout": layout_data(plan),
        "replicas": plan.request.replicas,
        "totalNodes": plan.total_nodes,
        "contextLength": load.context,
        "concurrency": load.concurrency,
        "gpuMemoryUtilization": load.utilization,
        "kvCacheBits": load.kv_bits,
        "gpuMemoryGiB": {
            "usable": _gib(memory.usable),
            "budget": _gib(memory.budget),
            "weights": _gib(memory.weights),
            **({"draft": _gib(memory.draft)} if load.draft else {}),
            "kvCache": _gib(memory.kv_cache),
            "runtime": _gib(memory.runtime),
            "activations": _gib(memory.activations),
            "free": _gib(memory.free),
        },
        "maxContextLength": plan.max_context,
        "maxConcurrency": plan.max_concurrency,
        "flags": dict(plan.flags),
        "notes": list(plan.notes),
    }


def other_data(plan: Plan) -> dict[str, Json]:
    """Return an alternative plan as plain data."""
    return {
        "node": node_data(plan),
        "layout": layout_data(plan),
        "totalNodes": plan.total_nodes,
        "freeGiB": _gib(plan.memory.free),
        "maxContextLength": plan.max_context,
        "maxConcurrency": plan.max_concurrency,
    }


def plan_rows(title: str, plans: Iterable[Plan]) -> list[tuple[str, ...]]:
    """Return plans as the rows of a table, its header first.

    Args:
        title: header of the column with the instance types.
        plans: in the order of the table.
    """
    plans = list(plans)
    rows = [(title, "GPUS", "NODES", "PARALLEL", "CONTEXT", "SEQUENCES"), *map(_row, plans)]
    if all(plan.hardware.price is None for plan in plans):
        return rows
    prices = ["AN HOUR", *(price_text(plan).partition(" an hour")[0] or "–" for plan in plans)]
    return [(*row, price) for row, price in zip(rows, prices, strict=True)]


def ranking_data(ranking: Ranking) -> dict[str, Json]:
    """Return the nodes that a model fits on, and why it does not fit on others, as plain data."""
    return {
        "fits": [other_data(found) for found in ranking.plans],
        "refused": [
            {"node": item.hardware.name, "code": item.error.problem.code, "why": str(item.error)}
            for item in ranking.refused
        ],
    }


def _row(plan: Plan) -> tuple[str, ...]:
    hardware, layout = plan.hardware, plan.layout
    return (
        hardware.name,
        f"{hardware.count} × {hardware.gpu}",
        str(layout.nodes),
        _parallel(layout.tp, layout.pp, layout.dp),
        str(plan.load.context),
        str(plan.max_concurrency),
    )


def _parallel(tp: int, pp: int, dp: int) -> str:
    parts = [f"{name}{size}" for name, size in (("tp", tp), ("pp", pp), ("dp", dp)) if size > 1]
    return " ".join(parts) or "–"
