"""The presets say what the models' own config.json says, as a package of a registry has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.presets import presets
from kaigen.sizing.config_json import facts_of_config
from kaigen.sizing.facts import ModelFacts, facts_of

CONFIGS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "configs.json").read_text())["models"]

_NOT_IN_CONFIGS = {"kv_dtype", "min_compute_capability"}
"""Flags and limits of the engine."""
_V4 = ["deepseek-v4-flash", "deepseek-v4-pro"]
_LLAMA_4 = ["llama-4-maverick-17b-128e-instruct", "llama-4-scout-17b-16e-instruct"]
KNOWN = [
    ("kv_upper_bound", [*_V4, *_LLAMA_4], "the config does not say that the engine keeps less"),
    ("encoder", _LLAMA_4, "the package has the config of the decoder alone"),
    ("quantization", ["glm-5.3"], "the package has the config of the weights in 16 bits; the repository's are in 8"),
    ("quantization", ["kimi-k2.5"], "the format of the files is `compressed-tensors`, which has weights in 4 bits"),
    ("quantization", ["nvidia-nemotron-3-ultra-550b-a55b-nvfp4"], "it is in another file of the repository"),
]
"""Where presets say something else: the fact, the presets, and why."""


def compared() -> Iterator[tuple[str, ModelFacts, ModelFacts]]:
    """Yield name and facts of the presets that have a config, and those of the config."""
    for preset in presets(BUILT_IN):
        if preset.repo in CONFIGS:
            known = facts_of(preset)
            yield preset.name, known, facts_of_config(CONFIGS[preset.repo], name=preset.name, weights=known.weights)


def differences(known: ModelFacts, found: ModelFacts) -> Iterator[str]:
    """Yield the facts that differ; the width of a head is not used with MLA, and the catalogue leaves it out."""
    for name in set(ModelFacts.__struct_fields__) - _NOT_IN_CONFIGS:
        if getattr(known, name) != getattr(found, name) and not (name == "head_dim" and known.latent_dim):
            yield name


def test_presets_say_what_the_configs_of_their_models_say() -> None:
    found = {name: set(differences(known, config)) for name, known, config in compared()}
    assert len(found) >= 40
    differing = {(name, fact) for name, facts in found.items() for fact in facts}
    assert differing == {(name, fact) for fact, names, _ in KNOWN for name in names}


@pytest.mark.parametrize("repository", CONFIGS)
def test_a_plan_can_be_made_of_every_config(repository: str) -> None:
    facts = facts_of_config(CONFIGS[repository], name=repository, weights=1)
    assert facts.layers >= (facts.kv_layers or 0) + facts.state_layers
    assert facts.heads % facts.kv_heads == 0
