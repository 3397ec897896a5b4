"""Models by name, with the facts that sizing and serving need: `presets.json`, with the rows of the repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from kaigen.catalog.catalog import Catalog, Row
from kaigen.diagnostics.suggest import nearest


class Mla(Struct, frozen=True):
    """Multi-head latent attention: values per token and layer in the cache.

    Attributes:
        kv_lora_rank: size of the latent vector.
        rope_head_dim: the rotary part of the key.
    """

    kv_lora_rank: int
    rope_head_dim: int


class SlidingWindow(Struct, frozen=True):
    """Layers with a sliding window.

    Attributes:
        tokens: size of the window.
        layers: number of layers with the window.
    """

    tokens: int
    layers: int


class EngineFlags(Struct, frozen=True):
    """Flags that an engine needs to serve the model well. Empty for the default of the engine.

    Attributes:
        tool_call_parser: parser of tool calls, by vLLM's name.
        tool_chat_template: file of vLLM's `examples/` folder with the chat template, for tools or scores; empty when
            the model's own template does.
        reasoning_parser: parser that separates reasoning from the answer, by vLLM's name.
        tokenizer_mode: vLLM's `--tokenizer-mode`.
        config_format: vLLM's `--config-format`.
        load_format: vLLM's `--load-format`.
        kv_cache_dtype: that the model was trained for.
        args: further arguments of vLLM by name, without dashes; True for one that takes no value.
        env: variables of the environment.
        trust_remote_code: whether the model requires code from its repository.
        trust_remote_code_reason: why; empty when it does not.
    """

    tool_call_parser: str = ""
    tool_chat_template: str = ""
    reasoning_parser: str = ""
    tokenizer_mode: str = ""
    config_format: str = ""
    load_format: str = ""
    kv_cache_dtype: str = ""
    args: Mapping[str, str | bool] | None = None
    env: Mapping[str, str] | None = None
    trust_remote_code: bool = False
    trust_remote_code_reason: str = ""


class Correction(Struct, frozen=True):
    """A value of the source that kaigen corrected.

    Attributes:
        field: which, as in `presets.json`.
        was: value of the source.
        why: what is wrong with it.
    """

    field: str
    was: str | float
    why: str


class Preset(Struct, frozen=True):
    """One model.

    Attributes:
        name: catalogue name.
        aliases: other names.
        repo: Hugging Face repository.
        revision: pinned commit; empty for none.
        licence: as the model card says.
        gated: whether the repository requires a token; None when unknown.
        base: whether it is a base model, not trained to follow instructions.
        architecture: class name of its config.
        modalities: `text`, `image`, `audio`.
        layers: of the decoder.
        hidden_size: width of the hidden state.
        heads: attention heads.
        kv_heads: heads of keys and values.
        head_dim: width of a head; None for MLA.
        attention: `mha`, `gqa`, `mqa` or `mla`.
        mla: for `mla`.
        kv_layers: layers with a KV cache; None for all.
        sliding_window: None when no layer has one.
        state_mib: state per sequence of layers without attention, in MiB.
        state_layers: number of those layers.
        indexer_bytes: bytes per token and layer of the indexer of sparse attention.
        encoder_tokens: of the encoder, whose keys and values each layer of the decoder keeps; 0 without.
        kv_upper_bound: why the real cache is smaller; empty when the numbers are exact.
        max_context: in tokens.
        vocabulary: size; None when unknown.
        parameters: in billions; None when unknown.
        dtype: of weights that are not quantized.
        quantization: of the weights in the repository; None when they are not.
        weights: GiB by dtype or quantization of the checkpoint; the repository's own comes first.
        min_compute_capability: minimum of its kernels; None for the minimum of the engine.
        engine: flags.
        engines: that serve it: `vllm`, `transformers`.
        from_config: fields from the model's public config instead of the source of the table.
        notes: remarks.
        corrections: of values of the source.
        row: its row of the table, for columns that only a dialect reads.
    """

    name: str
    aliases: tuple[str, ...]
    repo: str
    revision: str
    licence: str
    gated: bool | None
    base: bool
    architecture: str
    modalities: tuple[str, ...]
    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int | None
    attention: str
    mla: Mla | None
    kv_layers: int | None
    sliding_window: SlidingWindow | None
    state_mib: int
    state_layers: int
    indexer_bytes: int
    encoder_tokens: int
    kv_upper_bound: str
    max_context: int
    vocabulary: int | None
    parameters: float | None
    dtype: str
    quantization: str | None
    weights: Mapping[str, float]
    min_compute_capability: float | None
    engine: EngineFlags
    engines: tuple[str, ...]
    from_config: tuple[str, ...]
    notes: tuple[str, ...]
    corrections: tuple[Correction, ...]
    row: Mapping[str, Any]

    @property
    def weights_gib(self) -> float:
        """Size of the weights in the repository, in GiB."""
        return next(iter(self.weights.values()))


@lru_cache(maxsize=16)
def _index(catalog: Catalog) -> Mapping[str, Row]:
    return catalog.index("presets", {row["name"]: _names(row) for row in catalog.rows("presets")})


def _names(row: Row) -> tuple[str, ...]:
    # Columns of foreign systems may have further names.
    foreign = [name for column in row.values() if isinstance(column, dict) for name in column.get("names", ())]
    return (*foreign, *row.get("aliases", ()), row["repo"])


@lru_cache(maxsize=4096)
def _preset(key: str, catalog: Catalog) -> Preset:
    entry = _index(catalog)[key]
    mla, window = entry.get("mla"), entry.get("slidingWindow")
    return Preset(
        name=entry["name"],
        aliases=tuple(entry.get("aliases", ())),
        repo=entry["repo"],
        revision=entry.get("revision", ""),
        licence=entry["licence"],
        gated=entry.get("gated"),
        base=entry.get("base", False),
        architecture=entry["architecture"],
        modalities=tuple(entry["modalities"]),
        layers=entry["layers"],
        hidden_size=entry["hiddenSize"],
        heads=entry["heads"],
        kv_heads=entry["kvHeads"],
        head_dim=entry.get("headDim"),
        attention=entry["attention"],
        mla=Mla(mla["kvLoraRank"], mla["ropeHeadDim"]) if mla else None,
        kv_layers=entry.get("kvLayers"),
        sliding_window=SlidingWindow(window["tokens"], window["layers"]) if window else None,
        state_mib=entry.get("stateMiBPerSequence", 0),
        state_layers=_state_layers(entry),
        indexer_bytes=entry.get("indexerBytesPerTokenPerLayer", 0),
        encoder_tokens=entry.get("encoderTokens", 0),
        kv_upper_bound=entry.get("kvUpperBound", ""),
        max_context=entry["maxContext"],
        vocabulary=entry.get("vocabularySize"),
        parameters=entry.get("parametersB"),
        dtype=entry["dtype"],
        quantization=entry.get("quantization"),
        weights=entry["weightsGiB"],
        min_compute_capability=entry.get("minComputeCapability"),
        engine=_engine(entry.get("engine", {})),
        engines=tuple(entry.get("engines", ("vllm",))),
        from_config=tuple(entry.get("fromConfig", ())),
        notes=tuple(entry.get("notes", ())),
        corrections=tuple(Correction(item["field"], item["was"], item["why"]) for item in entry.get("corrections", ())),
        row=entry,
    )


def _state_layers(entry: Row) -> int:
    """Return the layers with a state: all without a KV cache, where the row does not say it."""
    if "stateMiBPerSequence" not in entry:
        return 0
    layers: int = entry["layers"] - entry.get("kvLayers", 0)
    return int(entry.get("stateLayers", layers))


def _engine(entry: Mapping[str, Any]) -> EngineFlags:
    return EngineFlags(
        tool_call_parser=entry.get("toolCallParser", ""),
        tool_chat_template=entry.get("toolChatTemplate", ""),
        reasoning_parser=entry.get("reasoningParser", ""),
        tokenizer_mode=entry.get("tokenizerMode", ""),
        config_format=entry.get("configFormat", ""),
        load_format=entry.get("loadFormat", ""),
        kv_cache_dtype=entry.get("kvCacheDtype", ""),
        args=entry.get("args"),
        env=entry.get("env"),
        trust_remote_code=entry.get("trustRemoteCode", False),
        trust_remote_code_reason=entry.get("trustRemoteCodeReason", ""),
    )


def preset_names(catalog: Catalog) -> tuple[str, ...]:
    """Return every catalogue name, in order."""
    return tuple(row["name"] for row in catalog.rows("presets"))


def presets(catalog: Catalog) -> tuple[Preset, ...]:
    """Return every preset, in the order of names."""
    return tuple(_preset(name.lower(), catalog) for name in preset_names(catalog))


def find_preset(name: str, catalog: Catalog) -> Preset | None:
    """Return the preset of a name, alias or repository, ignoring case; None when there is none."""
    row = _index(catalog).get(name.lower())
    return _preset(row["name"].lower(), catalog) if row is not None else None


def _sizes(name: str) -> set[str]:
    """Return the numbers of parameters in a name: `122b` and `a10b` of `qwen3.5-122b-a10b`."""
    return set(re.findall(r"(?<![a-z0-9.])[ae]?[0-9]+(?:\.[0-9]+)?b(?![a-z0-9])", name.lower()))


def nearest_presets(name: str, catalog: Catalog, *, limit: int = 3) -> list[str]:
    """Return similar names and aliases, nearest first; a prefix is enough.

    A name with a size, such as `7B`, has only similar names with that size: a model of another size needs other GPUs.
    """
    wanted = name.rsplit("/", 1)[-1]
    begins: dict[str, str] = {}
    for known in sorted((each for each in _index(catalog) if "/" not in each), key=len):
        if not _sizes(wanted) <= _sizes(known):
            continue
        parts = known.split("-")
        for length in range(len(parts), 0, -1):
            begins.setdefault("-".join(parts[:length]), known)
    found = (begins[near] for near in nearest(wanted, begins, limit=4 * limit))
    return list(dict.fromkeys(found))[:limit]
