"""What readers are told of a Topology: a summary, and what was decided for them."""

from __future__ import annotations

from kaigen.compile.app import Note
from kaigen.compile.topology.resolution import Resolved
from kaigen.compile.topology.sizing import GIB


def summary(topology: Resolved) -> str:
    """What it does, in a sentence."""
    if topology.mode == "template":
        return "Serves what its pod template runs, behind a Service."
    what = {"vllm": "vLLM", "transformers": "kaigen's own server", "container": "a container"}[topology.mode]
    return f"Serves a model by {what}, behind a Service."


def notes(topology: Resolved) -> tuple[Note, ...]:
    """What was decided where the spec leaves it open, each with the field that would decide otherwise."""
    if topology.mode == "template":
        return ()
    found, sized = [], topology.sized
    if topology.mode == "vllm" and topology.gpus:
        found.append(Note(f"One copy is {topology.parallel.words}.", ("spec", "shape")))
    if sized.plan is not None:
        found.append(Note(f"It fits: {sized.words}.", ("spec", "preset")))
        found += [Note(f"{_sentence(text)}.", ("spec", "preset")) for text in sized.plan.notes]
    size = topology.weights.size
    most = "" if sized.preset is not None else "at most "
    known = f"{most}{size / GIB:.1f} GiB of weights" if size else "weights of a size that nobody said"
    why = "as the spec says" if topology.spec.probes.startup else f"for {known}"
    minutes = topology.startup // 60
    found.append(Note(f"A pod may take {minutes} minutes to be ready, {why}.", ("spec", "probes")))
    return tuple(found)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
