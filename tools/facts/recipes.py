"""Make tests/unit/catalog/recipes.json: what vLLM's own recipes say of models, which the presets are compared with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tools.facts.sources import package_date

TABLE = Path(__file__).parent.parent.parent / "tests" / "unit" / "catalog" / "recipes.json"
_FLAGS = (
    *("tool-call-parser", "reasoning-parser", "tokenizer-mode", "config-format", "load-format"),
    *("max-model-len", "max-num-seqs", "kv-cache-dtype", "trust-remote-code", "tool-parser-plugin"),
)


def flags_in(arguments: Sequence[str]) -> Iterator[tuple[str, str | bool]]:
    """Yield the flags of a command line that the presets are compared with, with their values."""
    for index, argument in enumerate(arguments):
        name, equals, value = str(argument).removeprefix("--").partition("=")
        following = str(arguments[index + 1]) if index + 1 < len(arguments) else "--"
        if str(argument).startswith("--") and name in _FLAGS:
            yield name, value if equals else True if following.startswith("--") else following


def models_of(recipe: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what a recipe says of its model and of each variant that is a repository of its own."""
    model, variants = recipe["model"], recipe.get("variants") or {}
    features = [word for each in (recipe.get("features") or {}).values() for word in each.get("args") or []]
    # A feature may extend the context: that of the model is among the arguments that it always has.
    chosen = [(name, value) for name, value in flags_in(features) if name != "max-model-len"]
    shared = {**dict(flags_in(model.get("base_args") or [])), **dict(chosen)}
    found: dict[str, dict[str, Any]] = {}
    for variant in [{}, *variants.values()]:
        repo = variant.get("model_id", model["model_id"])
        own = found.setdefault(repo, {"context": model.get("context_length"), "flags": dict(shared)})
        if repo == model["model_id"] and not variant:
            continue
        own["flags"] |= dict(flags_in(variant.get("extra_args") or []))
    return found


def table(folder: Path, version: str) -> str:
    """Return the content of the table.

    Args:
        folder: files of a version of vLLM.
        version: of it.
    """
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("recipes/models/*/*.yaml")):
        recipe = yaml.load(path.read_bytes(), yaml.CSafeLoader)
        for repo, row in models_of(recipe).items():
            rows.setdefault(repo, {"recipe": f"{path.parent.name}/{path.name}", **row})
    head = {"source": f"recipes/models in the sdist of vLLM {version}", "date": package_date(folder)}
    lines = [f"  {json.dumps(repo)}: {json.dumps(row)}" for repo, row in sorted(rows.items())]
    return json.dumps(head)[:-1] + ',\n "models": {\n' + ",\n".join(lines) + "\n }\n}\n"
