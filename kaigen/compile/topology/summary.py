"""Texts about a Topology: its summary, and notes on what kaigen decided."""

from __future__ import annotations

from kaigen.compile.app import Note
from kaigen.compile.topology.resolution import TopologyResolution
from kaigen.compile.topology.sizing import model_path, why_unknown
from kaigen.compile.topology.surprises import ETHERNET, stops_the_only_replica, uses_ethernet
from kaigen.sizing.format import context_limit
from kaigen.sizing.ring import ring_text
from kaigen.sizing.room import GIB


def summary(resolution: TopologyResolution) -> str:
    """Return what the app does, in one sentence."""
    if not resolution.engine.builds_pods:
        return "Serves the containers of its pod template behind a Service."
    text = f"Serves a model with {resolution.engine.facts.title} behind a Service."
    if resolution.parallelism.nodes == 1:
        return text
    if resolution.sizing.ring is not None:
        return f"{text} Each replica is a ring of {resolution.parallelism.nodes} nodes."
    slow = ETHERNET if uses_ethernet(resolution) else ""
    return f"{text} Each replica uses {resolution.parallelism.summary}{slow}."


def notes(resolution: TopologyResolution) -> tuple[Note, ...]:
    """Return what kaigen decided where the spec leaves it open, each with the field that overrides it."""
    if not resolution.engine.builds_pods:
        return ()
    items, sizing = [], resolution.sizing
    if resolution.engine.facts.planned and resolution.gpus:
        items.append(Note(f"Each replica uses {resolution.parallelism.summary}.", ("spec", "shape")))
    if sizing.plan is not None:
        model = model_path(resolution.spec)
        items.append(Note(f"It fits: {sizing.summary}.", model))
        context = f"{sizing.plan.load.context} tokens{context_limit(sizing.plan)}"
        items.append(Note(f"The longest context of a request is {context}.", ("spec", "contextLength")))
        items += [Note(f"{_sentence(text)}.", model) for text in sizing.plan.notes]
    elif resolution.engine.facts.planned and sizing.model is None:
        why = why_unknown(resolution.spec, resolution.namespace, resolution.context.specs)
        items.append(Note(f"It is not known whether the model fits: {why}.", model_path(resolution.spec)))
    items += _ring_notes(resolution)
    size = resolution.weights.size
    exact = sizing.model is not None or sizing.ring is not None
    most = "" if exact else "at most "
    known = f"{most}{size / GIB:.1f} GiB of weights" if size else "weights of unknown size"
    why = "as set in the spec" if resolution.spec.probes.startup else f"for {known}"
    minutes = resolution.startup // 60
    items.append(Note(f"A pod may take {minutes} minutes to become ready, {why}.", ("spec", "probes")))
    if stops_the_only_replica(resolution):
        text = "A change stops the only replica before it starts the next, so the service is down until that is ready."
        items.append(Note(text, ("spec", "rollout")))
    return tuple(items)


def _ring_notes(resolution: TopologyResolution) -> list[Note]:
    """Return what a ring needs of its nodes."""
    ring = resolution.sizing.ring
    if ring is None:
        return []
    items = [
        Note(f"The longest context of a request is {ring.context} tokens.", ("spec", "contextLength")),
        Note(
            "The image must be built for the processors of the nodes: distributed-llama is compiled for those of the "
            "machine that builds it, and is fast only with AVX2, AVX-512 or NEON.",
            ("spec", "placement", "nodeSelector"),
        ),
    ]
    if ring.shape is not None:
        items.insert(0, Note(f"It fits: {ring_text(ring)}.", ("spec", "shape", "nodes")))
    return items


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
