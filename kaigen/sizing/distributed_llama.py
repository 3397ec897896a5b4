"""Sizes of models in distributed-llama's format, from their `config.json`.

Source of the format: distributed-llama v0.16.4, `src/llm.cpp` and `converter/`. The sums agree with the sizes of the
files that its author publishes.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.presets import find_preset
from kaigen.core.json_types import Json
from kaigen.kinds.model import DownloadSpec, ModelSpec
from kaigen.sizing.config_json import MOST, wrong_number
from kaigen.sizing.constants import GIB
from kaigen.sizing.problem import Field, PlanError

BYTES: Mapping[str, float] = {"q40": 18 / 32, "f32": 4.0}
"""Bytes of a weight. A block of 32 weights in q40 has 16 bytes and a scale of 2."""

BLOCK = 32
ARCHITECTURES = ("llama", "mistral", "qwen3", "qwen3_moe")
"""Values of `model_type` that the runtime knows."""

UNLOADABLE: Mapping[str, str] = {
    "q80": "it computes q80 for what it sends between nodes, and has no product of q80 weights",
    "f16": "it has no product of f16 weights",
}
"""Why the runtime cannot load a type that its converter writes (distributed-llama v0.16.4, all 16 pairs tried)."""

_HEADER = 200
"""At most: magic number, length, and 22 pairs of key and value with 4 bytes each."""
_PROCESS = 128 << 20
_TOKEN = 2 << 10
_MANY_TOKENS = 262_144
_ACTIVATIONS = ("silu", "gelu")
_EPSILONS = (1e-5, 1e-6)


class Shape(Struct, frozen=True):
    """Shape of a model that distributed-llama can run.

    Attributes:
        model_type: as in `config.json`.
        dim: width of the hidden state.
        hidden_dim: width of the feed-forward layers; of one expert if there are experts.
        layers: number of layers.
        heads: attention heads.
        kv_heads: heads of keys and values.
        head_dim: width of a head.
        vocabulary: number of tokens.
        context: longest context.
        experts: experts of a layer; 0 for a dense model.
        active_experts: experts that a token uses.
    """

    model_type: str
    dim: int
    hidden_dim: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    experts: int = 0
    active_experts: int = 0

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
        """Whether queries and keys are normalized: Qwen3."""
        return self.model_type.startswith("qwen3")

    @property
    def layer_weights(self) -> int:
        """Number of weights of a layer that are stored in the type of the weights."""
        experts = max(self.experts, 1)
        return 2 * self.dim * self.q_dim + 2 * self.dim * self.kv_dim + experts * 3 * self.dim * self.hidden_dim

    @property
    def layer_floats(self) -> int:
        """Number of weights of a layer that are always f32: norms, and the gate of experts."""
        norms = 2 * self.dim + (2 * self.head_dim if self.has_head_norms else 0)
        return norms + self.experts * self.dim


def shape_of_config(config: Mapping[str, Json]) -> Shape:
    """Return the shape of a model.

    Args:
        config: content of its `config.json`, as Hugging Face has it.

    Raises:
        PlanError: distributed-llama cannot run it, or a number is missing.
    """
    kind = config.get("model_type")
    if kind not in ARCHITECTURES:
        raise _refusal(f"distributed-llama cannot run models of type `{kind}`", f"it runs {', '.join(ARCHITECTURES)}")
    _check_variant(config)
    experts = _number(config, "num_experts", 0) if kind == "qwen3_moe" else 0
    dim, heads = _number(config, "hidden_size"), _number(config, "num_attention_heads")
    return Shape(
        model_type=str(kind),
        dim=dim,
        hidden_dim=_number(config, "moe_intermediate_size" if experts else "intermediate_size"),
        layers=_number(config, "num_hidden_layers"),
        heads=heads,
        kv_heads=_number(config, "num_key_value_heads", heads),
        head_dim=_number(config, "head_dim", dim // heads),
        vocabulary=_number(config, "vocab_size"),
        context=_number(config, "max_position_embeddings"),
        experts=experts,
        active_experts=_number(config, "num_experts_per_tok", 0) if experts else 0,
    )


def _check_variant(config: Mapping[str, Json]) -> None:
    """Report what the runtime ignores or rejects, so that its answers would be wrong."""
    activation, epsilon = config.get("hidden_act", "silu"), config.get("rms_norm_eps", 1e-5)
    if activation not in _ACTIVATIONS:
        raise _refusal(f"distributed-llama has no activation `{activation}`", f"it has {' and '.join(_ACTIVATIONS)}")
    if epsilon not in _EPSILONS:
        raise _refusal(f"distributed-llama cannot use `rms_norm_eps: {epsilon}`", "it can use 1e-05 and 1e-06")
    for name in ("attention_bias", "mlp_bias"):
        if config.get(name):
            raise _refusal(f"distributed-llama ignores biases, and the model has `{name}`", "use another model")
    if "quantization_config" in config:
        raise _refusal("the weights are quantized already", "use the repository with the original weights")
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if isinstance(scaling, Mapping):
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        if kind not in ("default", "llama3"):
            raise _refusal(f"distributed-llama has no RoPE scaling `{kind}`", "it has `llama3`")


def check_blocks(shape: Shape, weights: str) -> None:
    """Report a shape whose rows have no whole blocks in a type of weights.

    Raises:
        PlanError: a row does not divide.
    """
    if weights != "q40":
        return
    for what, width in (("hidden_size", shape.dim), ("the heads", shape.q_dim), ("the MLP", shape.hidden_dim)):
        if width % BLOCK:
            raise _refusal(
                f"q40 has blocks of {BLOCK} weights, and {what} of the model has a width of {width}",
                "use `weights: f32`",
            )


def file_bytes(shape: Shape, weights: str) -> int:
    """Return the size of `model.m`, with the largest possible header.

    Args:
        shape: of the model.
        weights: type of the numbers: `q40` or `f32`.
    """
    embedding = shape.vocabulary * shape.dim
    stored = shape.layers * shape.layer_weights + embedding
    floats = embedding + shape.layers * shape.layer_floats + shape.dim
    return _HEADER + int(stored * BYTES[weights]) + 4 * floats


def estimated_bytes(parameters: int, vocabulary: int, dim: int, weights: str) -> int:
    """Return the largest size of `model.m` of a model with so many parameters, when its shape is not known."""
    embedding = vocabulary * dim
    return int((parameters + embedding) * BYTES[weights]) + 4 * embedding


def converter_memory(shape: Shape | None) -> str:
    """Return the memory of kaigen's converter as a quantity.

    It reads a few rows at a time, so that its memory depends on the tokenizer, not on the weights: 60 MiB were measured
    without tokens (`benchmarks/convert.py`).
    """
    tokens = shape.vocabulary if shape is not None else _MANY_TOKENS
    return f"{-(-(_PROCESS + tokens * _TOKEN) // (64 << 20)) * 64}Mi"


def _number(config: Mapping[str, Json], key: str, default: int | None = None) -> int:
    value = config.get(key)
    if value is None:
        if default is not None:
            return default
        message = f"the config has no `{key}`"
        raise PlanError("KG1103", Field.MODEL, message, "copy config.json from the repository of the model")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST:
        raise wrong_number(key, value)
    return value


def _refusal(message: str, hint: str) -> PlanError:
    return PlanError("KG0390", Field.MODEL, message, hint)


def conversion_text(spec: DownloadSpec, catalog: Catalog) -> str:
    """Return what a Model is converted to, with its size, as a sentence; empty for a Model that is not converted."""
    if not isinstance(spec, ModelSpec):
        return ""
    convert = spec.convert.distributed_llama if spec.convert is not None else None
    if convert is None:
        return ""
    size = converted_bytes(spec, catalog)
    most = "" if spec.facts is not None else "at most "
    known = f"{most}{size / GIB:.2f} GiB" if size else "an unknown size"
    return f"The weights are converted to {convert.weights} for distributed-llama: model.m has {known}."


def converted_bytes(spec: DownloadSpec, catalog: Catalog) -> int:
    """Return the size of converted weights; an upper bound for a model of the catalogue; 0 if unknown."""
    if not isinstance(spec, ModelSpec):
        return 0
    convert = spec.convert.distributed_llama if spec.convert is not None else None
    if convert is None or convert.weights not in BYTES:
        return 0
    config = spec.facts.config if spec.facts is not None else None
    if isinstance(config, Mapping):
        try:
            return file_bytes(shape_of_config(config), convert.weights)
        except PlanError:
            return 0
    hub = spec.source.hugging_face
    preset = find_preset(hub.repo, catalog) if hub is not None else None
    if preset is None or not preset.parameters or not preset.vocabulary:
        return 0
    return estimated_bytes(int(preset.parameters * 1e9), preset.vocabulary, preset.hidden_size, convert.weights)
