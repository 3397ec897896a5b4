"""Plan a model: the fewest nodes on which it fits, and the best layout on them."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kaigen.sizing.constants import cache_bits, constant, has_since
from kaigen.sizing.engine import check_dtypes, engine_memory
from kaigen.sizing.facts import Hardware, ModelFacts, Request, quantize
from kaigen.sizing.layouts import check_overrides, layouts, most_nodes, preference
from kaigen.sizing.memory import (
    GpuMemory,
    Layout,
    Load,
    longest_context,
    memory_of_gpu,
    most_sequences,
    most_states,
)
from kaigen.sizing.problem import Field, PlanError

_DTYPES = ("bfloat16", "float16")


def plan(facts: ModelFacts, request: Request, hardware: Hardware) -> Plan:
    """Return the plan of a model on nodes of one kind.

    Args:
        facts: of the model.
        request: the load, and choices of the user.
        hardware: a node.

    Returns:
        The plan with the fewest nodes, and the best of those by `layouts.preference`.

    Raises:
        PlanError: the model does not fit, or a choice is not possible.
    """
    check_dtypes(request, request.kv_cache_dtype or facts.kv_dtype or "auto")
    if request.quantization and request.quantization != facts.quantization:
        facts = quantize(facts, request.quantization, request.version)
    load = settle(facts, request, hardware)
    _check_hardware(facts, request, hardware)
    check_overrides(facts, request, hardware)
    most = _most_nodes(facts, request, hardware)
    found = _fewest(facts, request, hardware, load, most)
    if found is None:
        raise _refusal(facts, request, hardware, load, most)
    layout, memory = found
    most = longest_context(facts, hardware, layout, load)
    if request.context_length is None:
        load = replace(load, context=most)
        memory = memory_of_gpu(facts, hardware, layout, load)
    return Plan(
        facts=facts,
        request=request,
        hardware=hardware,
        load=load,
        layout=layout,
        memory=memory,
        max_context=most,
        max_concurrency=most_sequences(facts, hardware, layout, load),
        flags=_flags(facts, request, load, layout, _fewer_sequences(facts, request, hardware, layout, load)),
        notes=_notes(facts, request, hardware, layout),
    )


def settle(facts: ModelFacts, request: Request, hardware: Hardware) -> Load:
    """Return the load that must fit: that of the request, with defaults applied.

    Raises:
        PlanError: for an invalid value.
    """
    context = request.context_length
    if context is None:
        context = min(facts.max_context, int(constant("leastContext")))
    concurrency = request.concurrency or int(constant("defaultConcurrency"))
    utilization = request.utilization or constant("utilization")
    kv_dtype = request.kv_cache_dtype or facts.kv_dtype or "auto"
    if context < 1 or concurrency < 1:
        field = Field.CONTEXT_LENGTH if context < 1 else Field.CONCURRENCY
        raise PlanError("KG1106", field, f"{field.value} is {min(context, concurrency)}", "use at least 1")
    if context > facts.max_context:
        raise PlanError(
            "KG1105",
            Field.CONTEXT_LENGTH,
            f"{facts.name} does not support {context} tokens",
            f"use at most {facts.max_context}",
        )
    if not 0 < utilization <= 1:
        raise PlanError(
            "KG1106", Field.UTILIZATION, f"{utilization} is not a share of a GPU", "use a number above 0 and at most 1"
        )
    if request.dtype is not None and request.dtype not in _DTYPES:
        raise PlanError.unknown_name(Field.DTYPE, "dtype", request.dtype, _DTYPES)
    engine = engine_memory(facts, request, hardware)
    return Load(context, concurrency, utilization, cache_bits(kv_dtype), engine, request.draft)


def _check_hardware(facts: ModelFacts, request: Request, hardware: Hardware) -> None:
    reason = hardware.unsupported
    if not reason and hardware.usable is None:
        reason = "its usable memory is unknown"
    if reason:
        raise PlanError("KG1104", Field.HARDWARE, f"engines cannot run on {hardware.gpu}: {reason}")
    if hardware.count < 1:
        raise PlanError("KG1106", Field.HARDWARE, "no GPU requested", "use at least 1")
    own = hardware.compute_capability
    half = (request.dtype or facts.dtype) == "float16"
    wanted = constant("minComputeCapabilityFloat16" if half else "minComputeCapability")
    wanted = max(wanted, facts.min_compute_capability or 0.0)
    if own is not None and own < wanted:
        older = own >= constant("minComputeCapabilityFloat16") and not facts.min_compute_capability
        why = "its kernels require" if facts.min_compute_capability == wanted else "the engine requires"
        raise PlanError(
            "KG1104",
            Field.HARDWARE,
            f"{facts.name} cannot run on {hardware.gpu}: {why} compute capability {wanted:g}, it has {own:g}",
            "use dtype float16, which requires 7.5" if older and not half else "",
        )


def _most_nodes(facts: ModelFacts, request: Request, hardware: Hardware) -> int:
    """Return the maximum number of nodes of a derived pipeline."""
    return min(most_nodes(facts, request, hardware), int(constant("mostNodes")))


def _fewest(
    facts: ModelFacts, request: Request, hardware: Hardware, load: Load, most: int
) -> tuple[Layout, GpuMemory] | None:
    """Return the best layout on as few nodes as possible; None when it does not fit."""
    if request.nodes is not None:
        return _best(facts, request, hardware, load, request.nodes)
    if most > 1 and not _can(facts, request, hardware, load, most):
        return None
    for nodes in range(1, most + 1):
        found = _best(facts, request, hardware, load, nodes)
        if found is not None:
            return found
    return None


def _can(facts: ModelFacts, request: Request, hardware: Hardware, load: Load, most: int) -> bool:
    """Return whether the model fits on one node or on the most nodes; if not, it fits on no number."""
    return any(_best(facts, request, hardware, load, nodes) is not None for nodes in {1, most})


def _best(
    facts: ModelFacts, request: Request, hardware: Hardware, load: Load, nodes: int
) -> tuple[Layout, GpuMemory] | None:
    best: tuple[tuple[int, ...], Layout, GpuMemory] | None = None
    for layout in layouts(facts, request, hardware, nodes):
        memory = memory_of_gpu(facts, hardware, layout, load)
        if memory.fits:
            rank = preference(layout, memory, hardware)
            if best is None or rank < best[0]:
                best = (rank, layout, memory)
    return best and best[1:]


def arithmetic(facts: ModelFacts, hardware: Hardware, layout: Layout, load: Load) -> str:
    """Return the memory of a GPU in one sentence."""
    memory = memory_of_gpu(facts, hardware, layout, load)
    each = -(-load.concurrency // layout.dp)
    return (
        f"each GPU needs {gib_text(memory.needed)} GiB of {gib_text(memory.budget)} "
        f"({memory.usable:.1f} × {load.utilization:g}): weights {gib_text(memory.weights)}, "
        + (f"draft model {gib_text(memory.draft)}, " if load.draft else "")
        + f"KV cache {gib_text(memory.kv_cache)} ({load.context} tokens × {each}), "
        f"overhead {gib_text(memory.overhead)}"
    )


def gib_text(value: float) -> str:
    """Return GiB with one decimal, or two for values that would round to 0."""
    return f"{value:.1f}" if value >= 0.1 or value < 0.005 else f"{value:.2f}"


def _refusal(facts: ModelFacts, request: Request, hardware: Hardware, load: Load, most: int) -> PlanError:
    """Return why nothing fits, with the memory of the nearest layout and an alternative."""
    nodes = request.nodes or most
    near = min(
        layouts(facts, request, hardware, nodes),
        key=lambda layout: memory_of_gpu(facts, hardware, layout, load).needed,
        default=None,
    )
    free = replace(request, tensor_parallel=None, pipeline_parallel=None, data_parallel=None, nodes=None)
    fixed = [
        (field, value)
        for field, value in (
            (Field.TENSOR_PARALLEL, request.tensor_parallel),
            (Field.PIPELINE_PARALLEL, request.pipeline_parallel),
            (Field.DATA_PARALLEL, request.data_parallel),
            (Field.NODES, request.nodes),
        )
        if value is not None
    ]
    choices = " and ".join(f"{field.value} {value}" for field, value in fixed)
    if near is None:
        return PlanError(
            "KG1106",
            fixed[0][0] if fixed else Field.HARDWARE,
            f"{choices or 'this layout'} cannot be used on nodes with {_gpus(hardware)}",
            "together they may use at most the GPUs of the nodes",
        )
    reason = arithmetic(facts, hardware, near, load)
    if fixed:
        found = _fewest(facts, free, hardware, load, _most_nodes(facts, free, hardware))
        help_ = f"; without it: {layout_text(found[0])}" if found else "; it does not fit without it either"
        return PlanError("KG1105", fixed[0][0], f"{facts.name} does not fit with {choices}", reason + help_)
    shape = f" even on {near.nodes} nodes" if near.nodes > 1 else ""
    return PlanError(
        "KG1105",
        Field.HARDWARE,
        f"{facts.name} does not fit on {hardware.name}{shape}",
        reason + _remedy(facts, hardware, near, load),
    )


def _remedy(facts: ModelFacts, hardware: Hardware, layout: Layout, load: Load) -> str:
    context = longest_context(facts, hardware, layout, load)
    return f"; {context} tokens would fit" if context >= 16 else ""


def _gpus(hardware: Hardware) -> str:
    return f"1 {hardware.gpu}" if hardware.count == 1 else f"{hardware.count} {hardware.gpu}"


def layout_text(layout: Layout) -> str:
    """Return a layout as text."""
    nodes = "1 node" if layout.nodes == 1 else f"{layout.nodes} nodes"
    parts = [
        f"{name} {value}"
        for name, value in (("tensorParallel", layout.tp), ("pipelineParallel", layout.pp), ("dataParallel", layout.dp))
        if value > 1
    ]
    return ", ".join([nodes, *parts])


def _fewer_sequences(facts: ModelFacts, request: Request, hardware: Hardware, layout: Layout, load: Load) -> int | None:
    """Return how many sequences the engine may serve at once, where that is less than its default; None elsewhere."""
    if request.concurrency is not None:
        return request.concurrency
    states = most_states(facts, hardware, layout, load)
    return states if states is not None and states < load.engine.sequences else None


def _flags(
    facts: ModelFacts, request: Request, load: Load, layout: Layout, sequences: int | None
) -> tuple[tuple[str, str], ...]:
    context = str(load.context)
    if request.context_length is None and request.engine_fits_context and load.concurrency == 1:
        # The engine measures what is left when it starts; it would refuse a number that is slightly too large.
        context = "auto"
    flags = [("max-model-len", context), ("gpu-memory-utilization", f"{load.utilization:g}")]
    flags += [("max-num-seqs", str(sequences))] if sequences is not None else []
    flags += [
        (name, str(value))
        for name, value in (
            ("tensor-parallel-size", layout.tp),
            ("pipeline-parallel-size", layout.pp),
            ("data-parallel-size", layout.dp),
        )
        if value > 1
    ]
    kv_dtype = request.kv_cache_dtype or facts.kv_dtype
    flags += [
        (name, value)
        for name, value in (
            ("dtype", request.dtype),
            ("quantization", request.quantization),
            ("kv-cache-dtype", kv_dtype),
        )
        if value and value != "auto"
    ]
    return tuple(flags)


def _notes(facts: ModelFacts, request: Request, hardware: Hardware, layout: Layout) -> tuple[str, ...]:
    notes = []
    if request.quantization == "fp8" and has_since("namedOnline", request.version):
        notes.append("vLLM deprecates `--quantization=fp8` for such weights; use `fp8_per_tensor`")
    if facts.kv_upper_bound:
        notes.append(f"the KV cache is an upper bound: {facts.kv_upper_bound}")
    if facts.vocabulary is None:
        notes.append(
            f"the vocabulary size is unknown; counted as {int(constant('vocabularyUnknown'))} tokens, the largest"
        )
    if request.unknown_draft:
        notes.append(
            f"the draft model {request.unknown_draft} is not counted, because its size is unknown: "
            "describe it with `facts` of its Model"
        )
    idle = layout.nodes * hardware.count - layout.gpus
    if idle:
        whose = "the node" if layout.nodes == 1 else "the nodes"
        notes.append(f"{idle} of the {layout.nodes * hardware.count} GPUs of {whose} are free for other pods")
    if layout.nodes > 1 and not hardware.network:
        notes.append("the catalogue knows no fast network between the nodes; pipeline stages use Ethernet")
    if layout.tp > hardware.count:
        notes.append("layers shared by several nodes need a network such as InfiniBand")
    if hardware.vendor == "amd":
        notes.append("AMD GPUs need the engine's build for ROCm, also in an `image` of your own")
        notes.append("runtime and activations were measured on NVIDIA GPUs only, so this plan may be too optimistic")
    if hardware.arch != "amd64":
        notes.append(f"the nodes are {hardware.arch}; images must be built for it")
    return tuple(notes)


class Plan(Struct, frozen=True):
    """How a model runs, and why it fits.

    Attributes:
        facts: of the loaded model.
        request: the request.
        hardware: of each node.
        load: the load with defaults applied.
        layout: nodes and parallelism of a replica.
        memory: of the fullest GPU.
        max_context: longest context at the load's concurrency.
        max_concurrency: sequences of the load's context length that fit at once, in a replica.
        flags: arguments of the engine, by vLLM's names without dashes.
        notes: remarks for people.
    """

    facts: ModelFacts
    request: Request
    hardware: Hardware
    load: Load
    layout: Layout
    memory: GpuMemory
    max_context: int
    max_concurrency: int
    flags: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @property
    def nodes(self) -> int:
        """Nodes of a replica."""
        return self.layout.nodes

    @property
    def total_nodes(self) -> int:
        """Nodes of all replicas."""
        return self.layout.nodes * self.request.replicas

    @property
    def gpus_per_node(self) -> int:
        """GPUs that each pod requests."""
        return -(-self.layout.gpus // self.layout.nodes)
