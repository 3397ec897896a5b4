"""The shape of a model, from its `config.json`, and the header of its file.

Source of the format: distributed-llama v0.16.4 (`src/llm.hpp`, `src/llm.cpp`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kaigen_convert.documents import Document, Json
from kaigen_convert.errors import NotConvertible

LLAMA, QWEN3, QWEN3_MOE = 0xABCD00, 0xABCD01, 0xABCD02
ARCHITECTURES = {"llama": LLAMA, "mistral": LLAMA, "qwen3": QWEN3, "qwen3_moe": QWEN3_MOE}
"""Number of an architecture by `model_type`."""

F32, Q40 = 0, 2
TYPES = {"f32": F32, "q40": Q40}
"""Number of a type of weights by its name."""

BLOCK, BLOCK_BYTES = 32, 18
"""Weights of a block in q40, and its bytes: a scale in f16 and 4 bits for each weight."""

_MAGIC = 0xA00ABCD
_ACTIVATIONS = {"gelu": 0, "silu": 1}
_EPSILONS = {1e-5: 5, 1e-6: 6}
_ROPE_LLAMA3 = 2
_KEYS = {
    "version": 0,
    "architecture": 1,
    "dim": 2,
    "hidden_dim": 3,
    "layers": 4,
    "heads": 5,
    "kv_heads": 6,
    "experts": 7,
    "active_experts": 8,
    "vocabulary": 9,
    "context": 10,
    "activation": 11,
    "rope_theta": 12,
    "weights": 13,
    "rope_factor": 14,
    "rope_low": 15,
    "rope_high": 16,
    "rope_context": 17,
    "rope_type": 18,
    "head_dim": 19,
    "epsilon": 20,
    "expert_dim": 21,
}
_MOST = 1 << 30


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of a model.

    Attributes:
        architecture: number of the architecture.
        dim: width of the hidden state.
        hidden_dim: width of the feed-forward layers, or of one expert.
        layers: number of layers.
        heads: attention heads.
        kv_heads: heads of keys and values.
        head_dim: width of a head.
        vocabulary: number of tokens.
        experts: experts of a layer; 0 for a dense model.
        weights: number of the type of the weights.
        header: the values of the header by name, in their order in the file.
    """

    architecture: int
    dim: int
    hidden_dim: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    experts: int
    weights: int
    header: dict[str, int]

    @property
    def q_dim(self) -> int:
        """Width of all heads."""
        return self.heads * self.head_dim

    @property
    def kv_dim(self) -> int:
        """Width of the heads of keys or values."""
        return self.kv_heads * self.head_dim

    @property
    def has_head_norms(self) -> bool:
        """Whether queries and keys are normalized."""
        return self.architecture != LLAMA

    @property
    def header_bytes(self) -> bytes:
        """The beginning of the file."""
        values = b"".join(struct.pack("<ii", _KEYS[name], value) for name, value in self.header.items())
        return struct.pack("<ii", _MAGIC, 8 + len(values)) + values

    @property
    def file_size(self) -> int:
        """Bytes of the file, by formula."""
        experts = max(self.experts, 1)
        layer = 2 * self.dim * (self.q_dim + self.kv_dim) + experts * 3 * self.dim * self.hidden_dim
        norms = 2 * self.dim + (2 * self.head_dim if self.has_head_norms else 0) + self.experts * self.dim
        embedding = self.vocabulary * self.dim
        typed = self.layers * layer + embedding
        return (
            len(self.header_bytes)
            + (4 * typed if self.weights == F32 else typed // BLOCK * BLOCK_BYTES)
            + 4 * (embedding + self.layers * norms + self.dim)
        )


def read_shape(config: Document, weights: str) -> Shape:
    """Return the shape of a model.

    Args:
        config: content of `config.json`.
        weights: name of the type of the weights.

    Raises:
        NotConvertible: the runtime cannot run it, or a number is missing or impossible.
    """
    kind = config.get("model_type")
    architecture = ARCHITECTURES.get(kind) if isinstance(kind, str) else None
    if architecture is None:
        raise NotConvertible(
            f"distributed-llama cannot run models of type {kind!r}; it runs {', '.join(ARCHITECTURES)}"
        )
    _check_variant(config)
    dim, heads = _number(config, "hidden_size"), _number(config, "num_attention_heads")
    kv_heads = _number(config, "num_key_value_heads", heads)
    given_head = _number(config, "head_dim", 0)
    experts = _number(config, "num_experts") if architecture == QWEN3_MOE else 0
    hidden = _number(config, "intermediate_size")
    header = {
        "version": 0,
        "architecture": architecture,
        "activation": _ACTIVATIONS[str(config.get("hidden_act", "silu"))],
        "dim": dim,
        "hidden_dim": hidden,
        "layers": _number(config, "num_hidden_layers", most=10_000),
        "heads": heads,
        "kv_heads": kv_heads,
        "weights": TYPES[weights],
        "context": _number(config, "max_position_embeddings"),
        "vocabulary": _number(config, "vocab_size"),
        "experts": experts,
        "active_experts": _number(config, "num_experts_per_tok") if experts else 0,
        **_rope(config),
        **({"head_dim": given_head} if given_head else {}),
        "epsilon": _epsilon(config),
        **({"expert_dim": _number(config, "moe_intermediate_size")} if experts else {}),
    }
    shape = Shape(
        architecture=architecture,
        dim=dim,
        hidden_dim=header.get("expert_dim", hidden),
        layers=header["layers"],
        heads=heads,
        kv_heads=kv_heads,
        head_dim=given_head or dim // heads,
        vocabulary=header["vocabulary"],
        experts=experts,
        weights=TYPES[weights],
        header=header,
    )
    _check(shape)
    return shape


def _check_variant(config: Document) -> None:
    """Refuse what the runtime ignores, so that its answers would be wrong."""
    if config.get("hidden_act", "silu") not in _ACTIVATIONS:
        raise NotConvertible(f"distributed-llama has no activation {config.get('hidden_act')!r}")
    for name in ("attention_bias", "mlp_bias"):
        if config.get(name):
            raise NotConvertible(f"distributed-llama ignores biases, and the model has `{name}`")
    if config.get("quantization_config"):
        raise NotConvertible("the weights are quantized already; use the repository with the original weights")
    if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1:
        raise NotConvertible("distributed-llama needs experts in every layer, and the model has layers without")
    if config.get("norm_topk_prob") is False and config.get("model_type") == "qwen3_moe":
        raise NotConvertible("distributed-llama normalizes the weights of experts, and the model does not")


def _check(shape: Shape) -> None:
    if shape.heads % shape.kv_heads:
        raise NotConvertible(f"config.json has {shape.heads} heads and {shape.kv_heads} for keys and values")
    if shape.head_dim < 2 or shape.head_dim % 2:
        raise NotConvertible(f"config.json has heads of width {shape.head_dim}, and RoPE turns pairs")
    if shape.weights == Q40:
        for what, width in (("hidden_size", shape.dim), ("the heads", shape.q_dim), ("the MLP", shape.hidden_dim)):
            if width % BLOCK:
                raise NotConvertible(f"q40 has blocks of {BLOCK} weights, and {what} has a width of {width}; use f32")


def _rope(config: Document) -> dict[str, int]:
    """Return the values about RoPE, from the layout before transformers 5 or since."""
    new = config.get("rope_parameters")
    scaling = new if isinstance(new, dict) else config.get("rope_scaling")
    scaling = scaling if isinstance(scaling, dict) else {}
    theta = scaling.get("rope_theta", config.get("rope_theta", 10_000.0))
    found = {"rope_theta": _whole(theta, "rope_theta")}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return found
    if kind != "llama3":
        raise NotConvertible(f"distributed-llama has no RoPE scaling {kind!r}; it has `llama3`")
    if config.get("model_type") not in ("llama", "mistral"):
        raise NotConvertible("distributed-llama scales RoPE only of Llama models")
    for name, key in (
        ("rope_factor", "factor"),
        ("rope_low", "low_freq_factor"),
        ("rope_high", "high_freq_factor"),
        ("rope_context", "original_max_position_embeddings"),
    ):
        found[name] = _whole(scaling.get(key), key)
    return {**found, "rope_type": _ROPE_LLAMA3}


def _whole(value: Json, name: str) -> int:
    """Return a number that the header stores as an integer."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST or value != int(value):
        raise NotConvertible(f"distributed-llama stores `{name}` as an integer, and config.json has {value!r}")
    return int(value)


def _epsilon(config: Document) -> int:
    value = config.get("rms_norm_eps", 1e-5)
    found = _EPSILONS.get(value) if isinstance(value, float) else None
    if found is None:
        raise NotConvertible(f"distributed-llama cannot use `rms_norm_eps: {value!r}`; it can use 1e-05 and 1e-06")
    return found


def _number(config: Document, key: str, default: int | None = None, most: int = _MOST) -> int:
    value = config.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
        raise NotConvertible(f"`{key}` of config.json must be a number from 1 to {most}, and is {value!r}")
    return value
