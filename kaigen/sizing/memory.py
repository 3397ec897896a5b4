"""Memory of each GPU: weights, KV cache, and overhead of the engine."""

from __future__ import annotations

from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from kaigen.sizing.constants import GIB, constant, weight_padding
from kaigen.sizing.engine import Blocks, EngineMemory, blocks_of
from kaigen.sizing.facts import Draft, Hardware, ModelFacts

_ROOM = 1e-9
"""Tolerance of floating-point sums, in GiB."""


class Layout(Struct, frozen=True):
    """How GPUs share the work of a replica.

    Attributes:
        nodes: nodes.
        tp: GPUs that share each layer.
        pp: stages that the layers are split into.
        dp: copies of the model.
    """

    nodes: int
    tp: int
    pp: int
    dp: int

    @property
    def gpus(self) -> int:
        """Number of used GPUs."""
        return self.tp * self.pp * self.dp


class Load(Struct, frozen=True):
    """The load, with all defaults applied.

    Attributes:
        context: tokens of the longest sequence.
        concurrency: sequences of that length at once.
        utilization: share of each GPU's memory for the engine.
        kv_bits: of a value in the cache, with its scales.
        engine: what the engine does by default.
        draft: a model that is loaded next to the served one; None for none.
    """

    context: int
    concurrency: int
    utilization: float
    kv_bits: float
    engine: EngineMemory
    draft: Draft | None = None


class GpuMemory(Struct, frozen=True):
    """Memory of the fullest GPU, in GiB.

    Attributes:
        usable: available to programs.
        budget: available to the engine.
        weights: of the GPU's share of the model.
        kv_cache: for the requested sequences, of both models.
        runtime: CUDA context, communication buffers and CUDA graphs.
        activations: intermediate results of a step, logits and encoder.
        draft: weights of the draft model; 0 without.
    """

    usable: float
    budget: float
    weights: float
    kv_cache: float
    runtime: float
    activations: float
    draft: float = 0.0

    @property
    def overhead(self) -> float:
        """Memory that is neither weights nor cache."""
        return self.runtime + self.activations

    @property
    def needed(self) -> float:
        """Total."""
        return self.weights + self.draft + self.kv_cache + self.overhead

    @property
    def free(self) -> float:
        """Rest of the budget, which the engine adds to the cache; negative when it does not fit."""
        return self.budget - self.needed

    @property
    def kv_space(self) -> float:
        """Memory available to the cache."""
        return self.budget - self.weights - self.draft - self.overhead

    @property
    def fits(self) -> bool:
        """Whether the total is within the budget."""
        return self.free >= -_ROOM


def _share(layers: int, pp: int) -> int:
    return ceil(layers / pp)


def weights_of_gpu(facts: ModelFacts, tp: int, pp: int, padding: float = 1.0) -> float:
    """Return the GiB of weights on the fullest GPU: the longest stage with one embedding, and padding."""
    if pp == 1:
        return facts.weights * padding / tp
    layers = facts.weights - facts.embedding
    return (layers * _share(facts.layers, pp) / facts.layers + facts.embedding) * padding / tp


def _token_bytes(facts: ModelFacts, tp: int, kv_bits: float) -> float:
    """Return the bytes of cache per token and layer on one GPU.

    Heads are dealt to the GPUs of a tensor parallel group, each to several when there are fewer heads than GPUs.
    MLA's latent vector belongs to no head, so each GPU keeps all of it. In 8 bits its rotary part stays at 16, and
    every 128 values have a 32-bit scale.
    """
    if facts.latent_dim:
        if kv_bits == 16:
            return facts.latent_dim * 2
        latent = facts.latent_dim - facts.rope_dim
        return latent + ceil(latent / 128) * 4 + facts.rope_dim * 2
    return 2 * max(1, ceil(facts.kv_heads / tp)) * facts.head_dim * kv_bits / 8


class CacheCost(Struct, frozen=True):
    """Size of the cache of one GPU, in bytes.

    Attributes:
        fixed: independent of the number of sequences.
        sequence: per sequence.
    """

    fixed: float
    sequence: float


def cache_blocks(facts: ModelFacts, tp: int, pp: int, kv_bits: float) -> Blocks | None:
    """Return the blocks of the cache of a model with states; None for other models."""
    return blocks_of(facts, _token_bytes(facts, tp, kv_bits) + facts.indexer_bytes, tp, pp)


def cache_cost(facts: ModelFacts, engine: EngineMemory, tp: int, pp: int, context: int, kv_bits: float) -> CacheCost:
    """Return the size of the cache for sequences of `context` tokens on the GPU with most layers.

    Layers with a sliding window keep the window, and while a prompt is read also the step that is being computed.
    Layers with a state keep it in blocks that are as large as those of the other layers. Layers of the decoder of an
    encoder-decoder model also keep the whole input of a sequence; vLLM starts only where one input of a full step fits
    (source: CrossAttentionSpec of vllm/v1/kv_cache_interface.py, 0.10.2 to 0.33.0).
    """
    if (blocks := cache_blocks(facts, tp, pp, kv_bits)) is not None:
        return CacheCost(0.0, blocks.of_sequence(context, engine.states) * blocks.bytes)
    block = int(constant("blockTokens"))
    tokens = ceil(context / block) * block
    layers = facts.layers if facts.kv_layers is None else facts.kv_layers
    full = _share(layers - facts.window_layers, pp)
    window = _share(facts.window_layers, pp)
    each = _token_bytes(facts, tp, kv_bits)
    sequence = full * tokens * (each + facts.indexer_bytes)
    sequence += window * min(tokens, ceil((facts.window + block) / block) * block) * each
    fixed = window * min(tokens, engine.tokens) * each
    if facts.encoder_tokens:
        heard = ceil(facts.encoder_tokens / block) * block
        sequence += full * heard * each
        fixed += full * max(0, engine.tokens - heard) * each
    return CacheCost(fixed, sequence)


def _runtime(tp: int, pp: int) -> float:
    together = constant("communicationGiB") if tp > 1 else constant("stagesGiB") if pp > 1 else 0.0
    return constant("contextGiB") + constant("graphsGiB") + together


def _activations(facts: ModelFacts, engine: EngineMemory) -> float:
    width = max(facts.hidden_size, constant("expertsWidth")) if facts.has_experts else facts.hidden_size
    tensors = engine.tokens * width * 2 * constant("activationTensors")
    words = facts.vocabulary or constant("vocabularyUnknown")
    logits = min(engine.sequences, engine.tokens) * words * 4 * engine.logits
    return (tensors + logits) / GIB + (constant("visionGiB") if facts.encoder else 0.0)


def memory_of_gpu(facts: ModelFacts, hardware: Hardware, layout: Layout, load: Load) -> GpuMemory:
    """Return the memory of the fullest GPU of a layout under a load."""
    usable = hardware.usable or 0.0
    cost = _cost(facts, layout, load)
    sequences = ceil(load.concurrency / layout.dp)
    return GpuMemory(
        usable=usable,
        budget=usable * load.utilization,
        weights=weights_of_gpu(facts, layout.tp, layout.pp, load.engine.padding),
        kv_cache=(cost.fixed + sequences * cost.sequence) / GIB,
        runtime=_runtime(layout.tp, layout.pp),
        activations=_activations(facts, load.engine),
        draft=_draft_weights(load.draft, layout),
    )


def _draft_weights(draft: Draft | None, layout: Layout) -> float:
    if draft is None:
        return 0.0
    padding = weight_padding(draft.facts.quantization)
    return weights_of_gpu(draft.facts, draft.tensor_parallel or layout.tp, 1, padding)


def _cost(facts: ModelFacts, layout: Layout, load: Load) -> CacheCost:
    """Return the size of the cache of the served model and its draft model."""
    cost = cache_cost(facts, load.engine, layout.tp, layout.pp, load.context, load.kv_bits)
    if load.draft is None:
        return cost
    tp = load.draft.tensor_parallel or layout.tp
    more = cache_cost(load.draft.facts, load.engine, tp, 1, load.context, load.kv_bits)
    return CacheCost(cost.fixed + more.fixed, cost.sequence + more.sequence)


def most_sequences(facts: ModelFacts, hardware: Hardware, layout: Layout, load: Load) -> int:
    """Return how many sequences of the load's length fit at once, in all copies of the model."""
    space = memory_of_gpu(facts, hardware, layout, load).kv_space * GIB
    cost = _cost(facts, layout, load)
    if space < cost.fixed or cost.sequence <= 0:
        return 0
    return int((space - cost.fixed + _ROOM * GIB) / cost.sequence) * layout.dp


def most_states(facts: ModelFacts, hardware: Hardware, layout: Layout, load: Load) -> int | None:
    """Return how many sequences of any length fit at once in each copy of a model with states; None for other models.

    vLLM refuses to start with a larger number (source: vllm/config/compilation.py,
    resolve_cudagraph_mode_and_sizes, since 0.20).
    """
    blocks = cache_blocks(facts, layout.tp, layout.pp, load.kv_bits)
    if blocks is None:
        return None
    return max(1, int(memory_of_gpu(facts, hardware, layout, load).kv_space * GIB / blocks.bytes))


def longest_context(facts: ModelFacts, hardware: Hardware, layout: Layout, load: Load) -> int:
    """Return the longest context at which the load's number of sequences fits, up to that of the model."""
    low, high = 0, facts.max_context
    while low < high:
        middle = (low + high + 1) // 2
        if memory_of_gpu(facts, hardware, layout, replace(load, context=middle)).fits:
            low = middle
        else:
            high = middle - 1
    return low
