"""A preset of the catalogue from a model's `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.config_files import parse_config, read_file
from kaigen.sizing.config_json import facts_of_config
from kaigen.sizing.constants import GIB


def preset_row(
    path: str, weights: float, *, name: str, repo: str, revision: str = "", licence: str = "unknown"
) -> dict[str, Any]:
    """Return the row of a preset.

    Args:
        path: of the model's `config.json`.
        weights: size of the weights that the engine loads, in GiB.
        name: of the preset.
        repo: Hugging Face repository; the one in the config when empty.
        revision: commit of the repository; empty for none.
        licence: as in the model card.

    Raises:
        InputError: the file is not a config, or names no repository.
        PlanError: a number is missing.
    """
    try:
        config = parse_config(read_file(path), path)
    except ProblemError as error:
        raise InputError.of(error.problem.code, str(error)) from None
    known = config.get("_name_or_path")
    repo = repo or (known if isinstance(known, str) and known.count("/") == 1 else "")
    if not repo:
        raise InputError.of("KG1103", f"{path} does not name the model's repository", hint="set --repo OWNER/NAME")
    facts = facts_of_config(config, name=name, weights=weights)
    architectures = config.get("architectures")
    hears = _has(config, "audio") or facts.encoder_tokens > 0
    row: dict[str, Any] = {
        "name": name,
        "repo": repo,
        "revision": revision,
        "licence": licence,
        "architecture": architectures[0] if isinstance(architectures, list) and architectures else "unknown",
        "modalities": ["text", *(["image"] * _has(config, "vision")), *(["audio"] * hears)],
        "layers": facts.layers,
        "hiddenSize": facts.hidden_size,
        "heads": facts.heads,
        "kvHeads": facts.kv_heads,
    }
    if facts.latent_dim:
        row["attention"] = "mla"
        row["mla"] = {"kvLoraRank": facts.latent_dim - facts.rope_dim, "ropeHeadDim": facts.rope_dim}
    else:
        row["headDim"] = facts.head_dim
        row["attention"] = {facts.heads: "mha", 1: "mqa"}.get(facts.kv_heads, "gqa")
    window = {"tokens": facts.window, "layers": facts.window_layers} if facts.window and facts.window_layers else None
    quantization = {"compressed-tensors": "int4", "fbgemm_fp8": "fp8"}.get(facts.quantization, facts.quantization)
    row |= {
        "kvLayers": facts.kv_layers,
        "slidingWindow": window,
        "stateMiBPerSequence": facts.state_mib,
        "stateLayers": facts.state_layers if facts.state_layers != facts.layers - (facts.kv_layers or 0) else 0,
        "encoderTokens": facts.encoder_tokens,
        "maxContext": facts.max_context,
        "vocabularySize": facts.vocabulary,
        "parametersB": None if quantization else round(weights * GIB / 2e9, 3),
        "dtype": facts.dtype,
        "quantization": quantization,
        "weightsGiB": {quantization or facts.dtype: weights},
        "source": f"config.json of {repo}" + (f" at {revision}" if revision else ""),
    }
    return {key: value for key, value in row.items() if value not in (None, "", 0)}


def _has(config: Mapping[str, Any], what: str) -> bool:
    return any(key.startswith(what) for key in config)
