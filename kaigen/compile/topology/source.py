"""Which weights a Topology serves: those that it names, or those of its preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kaigen.catalog.presets import Preset
from kaigen.compile.problems import Problems
from kaigen.compile.topology.fields import without_effect
from kaigen.compile.topology.sizing import preset_bytes
from kaigen.compile.topology.weights import Consumer, Weights, model_weights, pulled
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.serving import PulledModel
from kaigen.kinds.topology import TopologySpec


def served_weights(spec: TopologySpec, mode: str, preset: Preset | None, consumer: Consumer) -> Weights:
    """The weights of the model.

    Args:
        spec: the spec.
        mode: name of the engine, or `template`.
        preset: the catalogue's entry of the model; None when the spec names none that is known.
        consumer: who reads them.

    Raises:
        ProblemError: when it is not said what is served, or that cannot be.
    """
    if mode == "template":
        return Weights()
    if spec.token_secret is not None and (spec.preset is None or spec.model is not None):
        hint = "say it where the weights are named" if spec.model is not None else "leave it out"
        at = ("spec", "tokenSecret")
        without_effect(consumer.problems, "tokenSecret", at, "without a `preset` that is pulled", hint)
    if spec.model is not None:
        found = model_weights(spec.model, consumer)
        return found if preset is None else replace(found, size=preset_bytes(preset))
    if preset is not None:
        return _preset_weights(spec, preset, consumer)
    if spec.preset is not None or mode == "container":
        return Weights()
    raise ProblemError(
        "KG0341",
        "it is not said what is served",
        ("spec",),
        "name a Model in `model`, or another source of weights there",
    )


def _preset_weights(spec: TopologySpec, preset: Preset, consumer: Consumer) -> Weights:
    at = ("spec", "preset")
    if preset.gated and spec.token_secret is None and "HF_TOKEN" not in spec.env:
        consumer.problems.error(
            "KG0355",
            f"the repository of `{preset.name}` is gated, and there is no token for it",
            at,
            "name a Secret with a Hub token in `tokenSecret`, or fetch it as a Model",
        )
    if not preset.revision:
        consumer.problems.warning(
            "KG0310",
            f"the catalogue pins no commit of {preset.repo}",
            at,
            "name the repository and its commit in `model.huggingFace`",
        )
    hub = PulledModel(repo=preset.repo, revision=preset.revision or "main", token_secret=spec.token_secret)
    return pulled(hub, at, consumer, size=preset_bytes(preset), chosen=False)


def check_transfer(spec: TopologySpec, mode: str, reads: Sequence[Weights], problems: Problems) -> None:
    """Tell of a `transfer` block where nothing is fetched.

    Args:
        spec: the spec.
        mode: name of the engine, or `template`.
        reads: all weights that its pods read.
        problems: takes what is told.
    """
    fetches = any(
        isinstance(container, Mapping) and str(container.get("name", "")).startswith("fetch-")
        for each in reads
        for container in each.init
    )
    if "transfer" in spec.model_fields_set and not fetches and mode != "template":
        without_effect(
            problems,
            "transfer",
            ("spec", "transfer"),
            "where kaigen's downloader fetches nothing",
            "leave it out, or say it in the Model",
        )
