"""Koldun (`koldun.gorizond.io`), the operator of distributed-llama: models in buckets, and rings that serve them."""

from __future__ import annotations

from kaigen.dialects.registry import Dialect
from kaigen.kinds.kind import ForeignKind

GROUP = "koldun.gorizond.io"
API_VERSION = f"{GROUP}/v1"


def _kind(kind: str, model: str, lower: str, summary: str) -> ForeignKind:
    """Return a kind whose model and lowering are in the modules that the arguments name."""
    return ForeignKind(
        API_VERSION,
        kind,
        f"kaigen.dialects.koldun.{model}",
        summary,
        system="koldun",
        lower_reference=f"kaigen.dialects.koldun.{lower}",
    )


DIALECT = Dialect(
    name="koldun",
    title="Koldun",
    kinds=(
        _kind("Model", "model_kinds:Model", "weights:lower", "Koldun's model, downloaded and converted"),
        _kind("Dllama", "ring_kinds:Dllama", "root:lower_dllama", "Koldun's model served by a ring"),
        _kind("Root", "ring_kinds:Root", "root:lower", "Koldun's root of a ring"),
        _kind("Worker", "ring_kinds:Worker", "root:lower_worker", "Koldun's worker of a ring"),
        _kind("Ingress", "ingress_kinds:Ingress", "ingress:lower", "Koldun's rings that scale with requests"),
        _kind("Session", "ingress_kinds:Session", "ingress:lower_session", "Koldun's conversation; refused"),
        _kind("Token", "ingress_kinds:Token", "ingress:lower_token", "Koldun's API token; ignored"),
    ),
)
