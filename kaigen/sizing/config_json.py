"""Facts of a model from its `config.json`, for models that the catalogue does not have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple

from kaigen.core.json_types import Json
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.config_files import parse_config, read_file
from kaigen.sizing.facts import ModelFacts
from kaigen.sizing.problem import Field, PlanError

_INNER = ("text_config", "language_config", "llm_config")
"""Keys of the decoder's configuration in multimodal models."""

_NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "heads": ("num_attention_heads", "n_head"),
    "hidden size": ("hidden_size", "n_embd"),
    "context": (
        "max_position_embeddings",
        "n_positions",
        "n_ctx",
        "seq_length",
        "max_seq_len",
        "max_sequence_length",
        "model_max_length",
    ),
}
"""Keys by quantity, in order of precedence; architectures differ."""
_WHISPER = (
    *("d_model", "decoder_layers", "decoder_attention_heads"),
    *("max_target_positions", "max_source_positions", "vocab_size"),
)
NO_CACHE = "an encoder keeps no KV cache"
"""Why the cache of an encoder is smaller than that of a decoder of its shape."""
MOST = 10**9
"""Largest number that is believed; the largest context of a model has 10 million tokens."""

_SCALED = 128
"""Values of the indexer of sparse attention with one scale, in vLLM."""

_SHOWN = 40
"""Most characters of a wrong value in a message."""


def read_config_json(path: str, weights: float) -> ModelFacts:
    """Return the facts of a model from a file `config.json`.

    Args:
        path: of the file.
        weights: size of the weights in GiB.

    Raises:
        InputError: the file is not a config.
        PlanError: a number is missing.
    """
    try:
        data = read_file(path)
    except ProblemError as error:
        raise InputError.of(error.problem.code, str(error)) from None
    config = parse_config(data, path)
    known = config.get("_name_or_path")
    return facts_of_config(config, name=known if isinstance(known, str) and known else path, weights=weights)


def facts_of_config(config: Mapping[str, Json], *, name: str, weights: float) -> ModelFacts:
    """Return the facts of a model.

    Args:
        config: content of its `config.json`, as Hugging Face has it.
        name: for messages.
        weights: size of its weights in GiB, which the config does not contain.

    Raises:
        PlanError: a number without which there is no sum is missing, or a number is impossible.
    """
    if config.get("is_encoder_decoder") is True:
        return _transcriber(config, name, weights)
    text = next((inner for key in _INNER if isinstance(inner := config.get(key), Mapping)), config)
    layers, heads = _layers(text), _number(text, "heads")
    hidden = _number(text, "hidden size")
    rank, rope = _integer(text, "kv_lora_rank"), _integer(text, "qk_rope_head_dim")
    window, window_layers = _window(text, layers)
    kv_layers, state_layers, state = _stateful(text, layers)
    head_dim = _integer(text, "head_dim") or hidden // heads
    cached = layers if kv_layers is None else kv_layers
    if not head_dim or cached > layers or window_layers > cached:
        raise _impossible(f"the config has {layers} layers, {heads} heads and a width of {hidden}, which do not match")
    quantization = config.get("quantization_config") or text.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, Mapping) else None
    dtype = text.get("dtype") or text.get("torch_dtype") or config.get("dtype") or config.get("torch_dtype")
    return ModelFacts(
        name=name,
        weights=weights,
        layers=layers,
        heads=heads,
        kv_heads=_kv_heads(text, heads),
        head_dim=head_dim,
        hidden_size=hidden,
        max_context=_number(text, "context"),
        latent_dim=rank + rope if rank else 0,
        rope_dim=rope if rank else 0,
        kv_layers=kv_layers,
        window=window,
        window_layers=window_layers,
        state_mib=state,
        state_layers=state_layers,
        indexer_bytes=_indexer_bytes(text) if rank else 0,
        kv_upper_bound=NO_CACHE if _is_encoder(config) else "",
        vocabulary=_integer(text, "vocab_size") or _integer(config, "vocab_size") or None,
        encoder=any(key in config for key in ("vision_config", "audio_config", "vision_tower")),
        quantization=method if isinstance(method, str) else "",
        dtype="float16" if dtype == "float16" else "bfloat16",
    )


def _transcriber(config: Mapping[str, Json], name: str, weights: float) -> ModelFacts:
    """Return the facts of a Whisper, the only encoder-decoder model of the catalogue."""
    if config.get("model_type") != "whisper":
        raise PlanError(
            "KG1103",
            Field.MODEL,
            "the config is of an encoder-decoder model, and the plan knows only Whisper of these",
            "measure the memory of the model with the engine",
        )
    numbers = {key: _integer(config, key) for key in _WHISPER}
    if wrong := next((key for key, value in numbers.items() if not value), None):
        raise wrong_number(wrong, config.get(wrong))
    width, layers, heads, context, heard, words = numbers.values()
    if width % heads:
        raise _impossible(f"the config has {heads} heads and a width of {width}, which do not match")
    return ModelFacts(
        name=name,
        weights=weights,
        layers=layers,
        heads=heads,
        kv_heads=heads,
        head_dim=width // heads,
        hidden_size=width,
        max_context=context,
        encoder_tokens=heard,
        vocabulary=words,
        encoder=True,
        dtype="float16" if (config.get("dtype") or config.get("torch_dtype")) == "float16" else "bfloat16",
    )


def _is_encoder(config: Mapping[str, Json]) -> bool:
    """Return whether a model has no decoder, by the classes that vLLM has for embeddings and scores of such models."""
    classes = config.get("architectures")
    names = classes if isinstance(classes, Sequence) and not isinstance(classes, str) else ()
    return any(isinstance(name, str) and re.search(r"Bert|Roberta", name) for name in names)


def _integer(config: Mapping[str, Json], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        return 0
    if value > MOST:
        raise wrong_number(key, value)
    return value


def _impossible(message: str) -> PlanError:
    return PlanError("KG1103", Field.MODEL, message, "copy config.json from the repository of the model")


def wrong_number(key: str, value: Json) -> PlanError:
    """Return the error of a value that is not a number from 1."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return _impossible(f"`{key}` of the config is {shown}, and not a whole number from 1 to {MOST}")


def _number(config: Mapping[str, Json], what: str) -> int:
    for key in _NAMES[what]:
        if value := _integer(config, key):
            return value
    given = next((key for key in _NAMES[what] if config.get(key) is not None), None)
    if given is not None:
        raise wrong_number(given, config[given])
    raise PlanError("KG1103", Field.MODEL, f"the config has no {what}", f"expected one of {', '.join(_NAMES[what])}")


def _layers(config: Mapping[str, Json]) -> int:
    listed = _blocks(config).total
    return listed if listed and not any(key in config for key in _NAMES["layers"]) else _number(config, "layers")


def _kv_heads(config: Mapping[str, Json], heads: int) -> int:
    if config.get("multi_query") is True and not config.get("new_decoder_architecture"):
        return 1
    found = _integer(config, "num_key_value_heads") or _integer(config, "num_kv_heads") or heads
    if heads % found:
        raise PlanError(
            "KG1103",
            Field.MODEL,
            f"the config has {heads} attention heads and {found} KV heads",
            "one must divide the other",
        )
    return found


def _kinds(config: Mapping[str, Json], layers: int) -> list[Json]:
    """Return the type of each layer; empty if the config does not list them."""
    kinds = config.get("layer_types")
    listed = list(kinds) if isinstance(kinds, Sequence) and not isinstance(kinds, str) else []
    return listed if len(listed) == layers else []


def _window(config: Mapping[str, Json], layers: int) -> tuple[int, int]:
    """Return tokens and layers of a sliding window; no layers if the config does not list them."""
    tokens = _integer(config, "sliding_window")
    if not tokens or config.get("use_sliding_window") is False:
        return 0, 0
    if kinds := _kinds(config, layers):
        count = kinds.count("sliding_attention")
    else:
        pattern = _integer(config, "sliding_window_pattern")
        count = layers - layers // pattern if pattern else 0
    return (tokens, count) if count else (0, 0)


def _indexer_bytes(config: Mapping[str, Json]) -> int:
    """Return what the indexer of sparse attention keeps of a token: 8 bits a value, a 32-bit scale for each 128."""
    width = _integer(config, "index_head_dim")
    return width + 4 * ceil(width / _SCALED)


class _Blocks(NamedTuple):
    """Layers of a model of the kind Nemotron-H.

    Attributes:
        total: all; 0 for other kinds of models.
        attention: those with a KV cache.
        recurrent: those with a state.
    """

    total: int
    attention: int
    recurrent: int


def _blocks(config: Mapping[str, Json]) -> _Blocks:
    """Return the layers of a model whose config says what each is, as a letter or as a word."""
    letters, words = config.get("hybrid_override_pattern"), config.get("layers_block_type")
    if isinstance(letters, str):
        return _Blocks(len(letters), letters.count("*"), letters.count("M"))
    if isinstance(words, Sequence) and not isinstance(words, str):
        return _Blocks(len(words), words.count("attention"), words.count("mamba"))
    return _Blocks(0, 0, 0)


def _stateful(config: Mapping[str, Json], layers: int) -> tuple[int | None, int, int]:
    """Return the layers with a KV cache, None for all, those with a state, and the MiB of state per sequence.

    Recurrent state at 32 bit, and three steps of convolution at 16 bit.
    """
    blocks = _blocks(config)
    if blocks.total:
        heads, width = _integer(config, "mamba_num_heads"), _integer(config, "mamba_head_dim")
        size, groups = _integer(config, "ssm_state_size"), _integer(config, "n_groups")
        each = heads * width * size * 4 + (heads * width + 2 * groups * size) * 3 * 2
        return blocks.attention, blocks.recurrent, ceil(blocks.recurrent * each / 2**20)
    linear, each = _linear(config, layers)
    return (layers - linear, linear, ceil(linear * each / 2**20)) if linear else (None, 0, 0)


def _linear(config: Mapping[str, Json], layers: int) -> tuple[int, int]:
    """Return the layers of linear attention, and the bytes of state of each; Kimi's have as many keys as values."""
    delta = config.get("linear_attn_config")
    if isinstance(delta, Mapping):
        listed = delta.get("kda_layers")
        linear = len(listed) if isinstance(listed, Sequence) and not isinstance(listed, str) else 0
        values = keys = _integer(delta, "num_heads")
        wide = deep = _integer(delta, "head_dim")
    else:
        kinds, interval = _kinds(config, layers), _integer(config, "full_attention_interval")
        linear = kinds.count("linear_attention") if kinds else layers - layers // interval if interval else 0
        values, keys = _integer(config, "linear_num_value_heads"), _integer(config, "linear_num_key_heads")
        wide, deep = _integer(config, "linear_value_head_dim"), _integer(config, "linear_key_head_dim")
    return linear, values * wide * deep * 4 + (values * wide + 2 * keys * deep) * 3 * 2
