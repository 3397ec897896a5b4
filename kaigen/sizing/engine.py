"""What vLLM does with the memory of a GPU where no flag says it, by its version, the GPU and the model."""

from __future__ import annotations

from math import ceil

from msgspec import Struct

from kaigen.catalog.vllm_flags import flags_of, nearest_version, version_text
from kaigen.sizing.constants import cache_dtypes, constant, has_since, weight_padding
from kaigen.sizing.facts import Hardware, ModelFacts, Request
from kaigen.sizing.problem import Field, PlanError

_HOPPER = (9.0, 9.9)


class EngineMemory(Struct, frozen=True):
    """What a version of the engine does on a GPU.

    Attributes:
        tokens: of one step.
        sequences: most at once.
        logits: 32-bit copies of the logits while the sampler works.
        states: states that a sequence keeps in each layer without attention.
        padding: loaded size of the weights by their size on disk.
    """

    tokens: int
    sequences: int
    logits: float
    states: int
    padding: float


def engine_memory(facts: ModelFacts, request: Request, hardware: Hardware) -> EngineMemory:
    """Return what the engine does for a model on nodes.

    Args:
        facts: of the loaded model.
        request: has the version of the engine, and its flags.
        hardware: the nodes.
    """
    size = _size(hardware)
    if size == "Largest" and not has_since("largestSteps", request.version):
        size = "Large"
    return EngineMemory(
        tokens=request.step_tokens or int(constant(f"stepTokens{size}")),
        sequences=int(constant("stepSequencesLarge" if size else "stepSequences")),
        logits=constant("logitsCopies" if has_since("unsortedLogits", request.version) else "logitsCopiesSorted"),
        states=_states(request),
        padding=_padding(facts, request, hardware),
    )


def _size(hardware: Hardware) -> str:
    """Return the class of a GPU: nothing, `Large` or `Largest`; an A100 is not a large one."""
    if hardware.nominal >= constant("largestGpuGiB"):
        return "Largest"
    new = hardware.compute_capability is None or hardware.compute_capability >= constant("largeGpuCapability")
    return "Large" if new and hardware.nominal >= constant("largeGpuGiB") else ""


def _states(request: Request) -> int:
    """Return the states of a sequence: one, more with prefix caching, and one for each speculative token."""
    cached = request.prefix_caching
    if cached is None:
        cached = has_since("cachedStates", request.version)
    if not cached:
        return 1 + request.speculative_tokens
    return 2 + request.speculative_tokens + has_since("checkpointStates", request.version)


def _padding(facts: ModelFacts, request: Request, hardware: Hardware) -> float:
    method, capability = facts.quantization, hardware.compute_capability
    hopper = capability is not None and _HOPPER[0] <= capability <= _HOPPER[1]
    if method == "mxfp4" and hopper and has_since("unpaddedExperts", request.version):
        return weight_padding("mxfp4 unpadded")
    return weight_padding(method)


def check_dtypes(request: Request, kv_dtype: str) -> None:
    """Raise an error for names that the version of the engine does not accept.

    Args:
        request: has the version and the quantization.
        kv_dtype: of the cache.

    Raises:
        PlanError: an unknown name, with the accepted ones.
    """
    _check_choice(request, Field.QUANTIZATION, "quantization", request.quantization)
    _check_choice(request, Field.KV_CACHE_DTYPE, "kv-cache-dtype", kv_dtype)


_WHAT = {Field.QUANTIZATION: "quantization", Field.KV_CACHE_DTYPE: "dtype of the KV cache"}


def _check_choice(request: Request, field: Field, flag: str, value: str | None) -> None:
    version = nearest_version(request.version)
    choices = flags_of(version)[flag].choices or cache_dtypes()
    if value is None or value in choices:
        return
    what = f"{_WHAT[field]} of vLLM {version_text(version)}"
    raise PlanError.unknown_name(field, what, value, choices)


class Blocks(Struct, frozen=True):
    """The cache of a model with layers that keep a state, as vLLM divides it.

    Layers of both kinds are put into groups of the same number of layers, and a block is a page of each layer of a
    group: some tokens, or a state (source: vllm/v1/core/kv_cache_planning.py, vllm/platforms/interface.py).

    Attributes:
        bytes: of a block.
        tokens: of a block in layers with attention.
        attention: groups with attention.
        states: groups with a state.
    """

    bytes: float
    tokens: int
    attention: int
    states: int

    def of_sequence(self, context: int, states: int) -> int:
        """Return the blocks of a sequence of `context` tokens that keeps so many states."""
        return ceil(context / self.tokens) * self.attention + self.states * states


def blocks_of(facts: ModelFacts, token: float, tp: int, pp: int) -> Blocks | None:
    """Return the blocks on the GPU with most layers; None for a model without states.

    Args:
        facts: of the model.
        token: bytes of a token in a layer with attention.
        tp: GPUs that share each layer.
        pp: stages.
    """
    states = facts.state_layers
    if not states:
        return None
    layers = facts.layers if facts.kv_layers is None else facts.kv_layers
    fewest, most = sorted((layers, states))
    group = most if most < 1.5 * fewest or not fewest else fewest
    # Without layers that have attention, a block is a state: so many tokens of one byte.
    token = max(token, 1.0)
    step = int(constant("blockTokens"))
    tokens = step * max(1, ceil(facts.state_mib * 2**20 / states / tp / (token * step)))
    return Blocks(ceil(group / pp) * tokens * token, tokens, ceil(layers / group), ceil(states / group))
