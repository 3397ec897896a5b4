"""KAITO's presets: the model of a name, and the engine that serves it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.catalog.presets import find_preset, nearest_presets
from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import PresetV1Alpha1
from kaigen.dialects.kaito.catalog import kaito_preset
from kaigen.dialects.kaito.resource import Options, ResourceLowering, Runtime

if TYPE_CHECKING:
    from kaigen.catalog.presets import Preset
    from kaigen.dialects.kaito.nodes import Nodes

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
"""Presets that KAITO removed, with a current preset for the same purpose and of similar size."""

_LOADED, _ROOM = 1.02, 1.0
"""Size of loaded weights relative to their files, as KAITO counts it, and GiB for CUDA and a short conversation."""


class NamedModel(Struct, frozen=True):
    """The model that a preset name refers to.

    Attributes:
        name: as written; in lower case for a preset of KAITO.
        preset: of the catalogue; None for a repository that the catalogue does not have.
    """

    name: str
    preset: Preset | None


def find_model(preset: PresetV1Alpha1, at: FieldPath, lowering: ResourceLowering) -> NamedModel | None:
    """Return the model of a preset; None after an error.

    Args:
        preset: the block.
        at: its path.
        lowering: collects problems.
    """
    return find_named_model(preset.name, (*at, "name"), lowering)


def find_named_model(name: str, at: FieldPath, lowering: ResourceLowering) -> NamedModel | None:
    """Return the model that a name refers to; None after an error."""
    if lowering.is_placeholder(name, at, "the name of a model"):
        return None
    known = find_preset(name, lowering.context.catalog)
    if known is not None:
        return NamedModel(name.lower() if "/" not in name else known.name, known)
    if _REPO.match(name):
        return NamedModel(name, None)
    near = nearest_presets(name, lowering.context.catalog)
    lowering.error(
        "KG0407",
        f"unknown preset `{name}`",
        at,
        f"did you mean `{near[0]}`?"
        if near
        else "`kaigen presets` lists presets; a Hub repository is written `owner/name`",
    )
    return None


def served_names(model: NamedModel, own: str = "") -> list[str]:
    """Return the names by which requests may ask for a model, the first as in KAITO.

    KAITO serves a model by the last part of its repository in lower case, and the members of an InferenceSet by the
    name of the set. Its versions before 0.11 served it by the name in the resource.

    Args:
        model: the model.
        own: name of the set; empty for none.
    """
    current = model.preset.name if model.preset is not None else model.name.rpartition("/")[2].lower()
    return list(dict.fromkeys(name for name in (own, current, model.name) if name))


def warn_of_removed(model: NamedModel, at: FieldPath, lowering: ResourceLowering) -> None:
    """Warn about a preset that KAITO removed, and name its successor."""
    preset = model.preset
    if preset is None:
        return
    removed_in = kaito_preset(preset).removed_in
    if not removed_in:
        return
    successor = SUCCESSORS.get(preset.name, "")
    lowering.warning(
        "KG0408",
        f"KAITO {removed_in} removed the preset `{model.name}`; kaigen still serves it",
        at,
        f"consider `{successor}`" if successor else "",
    )


def runtime_for(model: NamedModel, nodes: Nodes, options: Options) -> Runtime:
    """Return the runtime with the API that users of the resource expect.

    `kaito.sh/runtime` decides. Without it, the runtime is vLLM, except for presets that KAITO removed: those date
    from when every model answered `POST /chat`, as kaigen's own server does. That server uses one GPU of one node, so a
    model that needs more runs on vLLM, with a middleware that answers `POST /chat`.

    Args:
        model: the model.
        nodes: what is known about the nodes.
        options: of the resource.
    """
    if options.runtime:
        return Runtime(options.runtime)
    preset = model.preset
    if preset is None or not kaito_preset(preset).removed_in:
        return Runtime.VLLM
    return Runtime.TRANSFORMERS if fits_one_gpu(preset, nodes) else Runtime.VLLM


def fits_one_gpu(preset: Preset, nodes: Nodes) -> bool:
    """Whether a model fits on one GPU of the nodes, or on an 80 GiB GPU when the nodes are unknown."""
    memory = nodes.instance.usable or nodes.instance.memory if nodes.instance else 80.0
    return preset.weights_gib * _LOADED + _ROOM <= memory


def put_preset(
    draft: Draft, model: NamedModel, runtime: Runtime, options: Options, at: FieldPath, lowering: ResourceLowering
) -> None:
    """Put the preset into a Topology, which sizes the model and sets flags of the engine.

    Args:
        draft: the Topology.
        model: the model.
        runtime: of the model.
        options: of the resource.
        at: path of the name.
        lowering: collects warnings.
    """
    preset = model.preset
    if preset is None:
        return
    if options.unchecked:
        key = "kaito.sh/bypass-resource-checks"
        lowering.warning(
            "KG0414",
            f"with `{key}` it is only a warning if `{model.name}` does not fit",
            lowering.annotation_at(key),
            "delete it, even if it is false: KAITO ignores the value",
            key=True,
        )
    else:
        draft.put(("spec", "preset"), preset.name, at)
    if preset.engine.trust_remote_code and runtime is Runtime.VLLM:
        draft.put(("spec", "trustRemoteCode"), True, at)
        lowering.warning(
            "KG0414",
            f"`{model.name}` runs code from its repository, which KAITO allows every model: "
            f"{preset.engine.trust_remote_code_reason}",
            at,
        )
