"""Presets of KAITO's: which model is meant, by which engine it is served, and how its weights are had."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import PresetOptions, PresetV1Alpha1
from kaigen.dialects.kaito.catalog import kaito_preset
from kaigen.dialects.kaito.reading import Reading, Wishes
from kaigen.kinds.spec import Path

if TYPE_CHECKING:
    from kaigen.catalog.presets import Preset
    from kaigen.dialects.kaito.nodes import Nodes

TOKEN_KEY = "HF_TOKEN"
_REPO = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$")

SUCCESSORS: Mapping[str, str] = {
    "falcon-7b": "mistral-7b-v0.3",
    "falcon-7b-instruct": "mistral-7b-instruct-v0.3",
    "falcon-40b": "qwen2.5-coder-32b-instruct",
    "falcon-40b-instruct": "gemma-3-27b-it",
    "llama-2-7b": "mistral-7b-v0.3",
    "llama-2-7b-chat": "llama-3.1-8b-instruct",
    "llama-2-13b": "phi-4",
    "llama-2-13b-chat": "phi-4",
    "llama-2-70b": "llama-3.3-70b-instruct",
    "llama-2-70b-chat": "llama-3.3-70b-instruct",
    "phi-2": "phi-4-mini-instruct",
}
"""A preset of today's that does what one did that KAITO removed, as near in size as there is one."""

_LOADED, _ROOM = 1.02, 1.0
"""How much larger weights are when they are loaded, as KAITO counts them, and GiB for CUDA and a short conversation."""


@dataclass(frozen=True, slots=True)
class Meant:
    """The model that a preset's name stands for.

    Attributes:
        name: as written, in lower case where it is KAITO's.
        preset: of the catalogue; None for a repository that the catalogue does not know.
    """

    name: str
    preset: Preset | None


def find(preset: PresetV1Alpha1, at: Path, reading: Reading) -> Meant | None:
    """The model that a preset means; None, and told, when there is none.

    Args:
        preset: the block.
        at: where it stands.
        reading: takes what is wrong.
    """
    return find_name(preset.name, (*at, "name"), reading)


def find_name(name: str, at: Path, reading: Reading) -> Meant | None:
    """The model that a name means; None, and told, when there is none."""
    from kaigen.catalog.presets import find_preset, nearest_presets

    if reading.is_placeholder(name, at, "the name of a model"):
        return None
    known = find_preset(name)
    if known is not None:
        return Meant(name.lower() if "/" not in name else known.name, known)
    if _REPO.match(name):
        return Meant(name, None)
    near = nearest_presets(name)
    reading.error(
        "KG0407",
        f"unknown preset `{name}`",
        at,
        f"did you mean `{near[0]}`?"
        if near
        else "`kaigen presets` shows those that are known; `owner/name` takes a repository on the Hub",
    )
    return None


def warn_of_removed(meant: Meant, at: Path, reading: Reading) -> None:
    """Say of a preset that newer versions of KAITO do not have what took its place."""
    preset = meant.preset
    if preset is None:
        return
    removed_in = kaito_preset(preset).removed_in
    if not removed_in:
        return
    successor = SUCCESSORS.get(preset.name, "")
    reading.warning(
        "KG0408",
        f"KAITO has no preset `{meant.name}` since {removed_in}; kaigen still serves it",
        at,
        f"for something newer take `{successor}`" if successor else "",
    )


def engine_of(meant: Meant, nodes: Nodes, wishes: Wishes) -> str:
    """The engine that answers as users of the resource expect.

    `kaito.sh/runtime` decides. Else vLLM, but for presets that KAITO removed: they are of the time when every model
    answered `POST /chat`, which kaigen's own server does beside OpenAI's routes. It uses one GPU of one node, so a
    model that needs more is vLLM's again.

    Args:
        meant: the model.
        nodes: what is known of the nodes.
        wishes: what annotations ask for.
    """
    if wishes.runtime:
        return wishes.runtime
    preset = meant.preset
    if preset is None or not kaito_preset(preset).removed_in:
        return "vllm"
    return "transformers" if fits_one_gpu(preset, nodes) else "vllm"


def fits_one_gpu(preset: Preset, nodes: Nodes) -> bool:
    """Whether kaigen's server can hold a model: on one GPU of the nodes, or on any when those are not known."""
    memory = nodes.instance.usable or nodes.instance.memory if nodes.instance else 80.0
    return preset.weights_gib * _LOADED + _ROOM <= memory


def put_facts(draft: Draft, meant: Meant, wishes: Wishes, at: Path, reading: Reading) -> None:
    """Name the catalogue's preset in a Topology: for its size, by which it is fitted, and for the engine's flags.

    Args:
        draft: the Topology.
        meant: the model.
        wishes: what annotations ask for.
        at: where the name stands.
        reading: takes what is worth a warning.
    """
    preset = meant.preset
    if preset is None:
        return
    if wishes.unchecked:
        key = "kaito.sh/bypass-resource-checks"
        reading.warning(
            "KG0414",
            f"`{key}` is there, so nobody checks whether `{meant.name}` fits, and no flags of its are set",
            reading.annotation_at(key),
            "delete it, also where it is false: KAITO looks at no value",
            key=True,
        )
        return
    draft.put(("spec", "preset"), preset.name, at)
    if preset.engine.trust_remote_code and draft.get(("spec", "engine")) == "vllm":
        draft.put(("spec", "trustRemoteCode"), True, at)
        reading.warning(
            "KG0414",
            f"`{meant.name}` runs code of its repository, as KAITO lets every model: "
            f"{preset.engine.trust_remote_code_reason}",
            at,
        )


def put_weights(draft: Draft, meant: Meant, preset: PresetV1Alpha1, at: Path, reading: Reading) -> None:
    """Put the model and the way of its weights into a Topology.

    Args:
        draft: the Topology.
        meant: the model.
        preset: the block.
        at: where it stands.
        reading: takes what is wrong.
    """
    options = preset.preset_options
    secret = options.model_access_secret if isinstance(options, PresetOptions) else None
    put_model(draft, meant, secret, (*at, "presetOptions", "modelAccessSecret"), (*at, "name"), reading)


def put_model(
    draft: Draft, meant: Meant, secret: str | None, secret_at: Path, name_at: Path, reading: Reading
) -> None:
    """The same, for a token's Secret by its name."""
    known = meant.preset
    hub = ("spec", "model", "huggingFace")
    draft.put((*hub, "repo"), known.repo if known else meant.name, name_at)
    draft.origins["spec", "model"] = name_at
    if known is not None and known.revision:
        draft.put((*hub, "revision"), known.revision, name_at)
    if secret:
        draft.put((*hub, "tokenSecret"), {"name": secret, "key": TOKEN_KEY}, secret_at)
    elif known is not None and known.gated:
        warn_of_gate(known, name_at, reading)


def warn_of_gate(preset: Preset, at: Path, reading: Reading) -> None:
    """Say of a gated model that a token is missing."""
    reading.warning(
        "KG0411",
        f"`{preset.repo}` is gated: the Hub gives it to those only who bring a token",
        at,
        f"name a Secret with a token under `{TOKEN_KEY}` in `modelAccessSecret` (kaito.sh/v1beta1)",
    )
