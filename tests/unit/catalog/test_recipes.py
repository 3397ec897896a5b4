"""The presets have the parsers and the context that vLLM's own recipes say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.presets import Preset, presets

RECIPES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "recipes.json").read_text())["models"]

_LLAMAS = ["llama-3.1-8b-instruct", "llama-3.2-1b-instruct", "llama-3.2-3b-instruct", "llama-3.3-70b-instruct"]
_MISTRALS = [
    *("ministral-3-14b-instruct-2512", "ministral-3-3b-instruct-2512", "ministral-3-8b-instruct-2512"),
    *("mistral-large-3-675b-instruct-2512", "mistral-medium-3.5-128b"),
    *("mistral-small-4-119b-2603", "mistral-small-4-119b-2603-nvfp4"),
]
_NEMOTRONS_3 = ["nvidia-nemotron-3-nano-30b-a3b-bf16", "nvidia-nemotron-3-nano-4b-bf16"]
_NEMOTRONS_2 = ["nvidia-nemotron-nano-12b-v2-vl-bf16", "nvidia-nemotron-nano-9b-v2"]
_PLAIN = "the recipe is for plain chats; vLLM's page about tool calling has this parser for the model"
_LATER = "the recipe is for the edition of July 2025, which does not think; its variant names the first one"
KNOWN = [
    ("reasoning-parser", ["gpt-oss-120b", "gpt-oss-20b"], "vLLM chooses it by the model; it is the same"),
    ("tool-call-parser", [*_LLAMAS, "llama-4-scout-17b-16e-instruct", "phi-4-mini-instruct"], _PLAIN),
    ("tokenizer-mode", _MISTRALS, "the recipe leaves it to vLLM, which finds the same mode by Mistral's files"),
    ("tokenizer-mode", ["kimi-k2-instruct"], "the recipe writes vLLM's default, `auto`"),
    ("reasoning-parser", _NEMOTRONS_3, "the recipe loads nano_v3 from the repository; vLLM has it as nemotron_v3"),
    ("reasoning-parser", _NEMOTRONS_2, "the recipe has no reasoning parser; KAITO v0.12.0 has this one"),
    (
        "tool-call-parser",
        ["nvidia-nemotron-nano-9b-v2"],
        "a plugin in the repository, which images of vLLM do not have",
    ),
    (
        "context",
        ["gemma-4-12b-it", "gemma-4-26b-a4b-it"],
        "KAITO v0.12.0 has 262144, as the recipe of the 31B model has; no source decides it",
    ),
    ("reasoning-parser", ["qwen3-235b-a22b-fp8"], _LATER),
    ("context", ["qwen3-235b-a22b-fp8"], f"{_LATER}; the model's config.json says 40960"),
    ("context", ["minimax-m2.7"], "KAITO v0.12.0 has 204800, from the model's config.json"),
]
"""Where presets say something else: the flag, the presets, and why."""


def compared() -> Iterator[tuple[Preset, dict[str, Any]]]:
    """Yield the presets that have a recipe."""
    for preset in presets(BUILT_IN):
        if preset.repo in RECIPES:
            yield preset, RECIPES[preset.repo]


def differences(preset: Preset, recipe: dict[str, Any]) -> Iterator[str]:
    """Yield the flags that a recipe sets to another value."""
    engine, flags = preset.engine, recipe["flags"]
    own = {
        "tool-call-parser": engine.tool_call_parser,
        "reasoning-parser": engine.reasoning_parser,
        "tokenizer-mode": engine.tokenizer_mode,
    }
    yield from (flag for flag, value in own.items() if (value or None) != flags.get(flag))
    if int(flags.get("max-model-len") or recipe["context"] or preset.max_context) != preset.max_context:
        yield "context"


def test_presets_say_what_the_recipes_say() -> None:
    found = {preset.name: set(differences(preset, recipe)) for preset, recipe in compared()}
    assert len(found) >= 60
    differing = {(name, flag) for name, flags in found.items() for flag in flags}
    assert differing == {(name, flag) for flag, names, _ in KNOWN for name in names}


def test_only_one_recipe_limits_the_sequences_on_every_gpu() -> None:
    limited = {
        preset.name: recipe["flags"]["max-num-seqs"]
        for preset, recipe in compared()
        if "max-num-seqs" in recipe["flags"]
    }
    # A Mamba hybrid: how many sequences fit depends on the GPUs, which the plan knows.
    assert limited == {"nvidia-nemotron-3-ultra-550b-a55b-nvfp4": "16"}
