"""Substratus (`substratus.ai/v1`): Models and Datasets that containers load and train, and what serves them.

Resources have two shapes. The first one is that of the operator's design: `container`, `loader`, `trainer`. The later
one is that of its releases: `image` or `build`, `params`, `model`, `dataset`. Facts are of the design (commit 51c3f30)
and of the last release (commit 7352fb0).
"""

from __future__ import annotations

from kaigen.dialects.registry import Dialect
from kaigen.dialects.substratus.names import API_VERSION
from kaigen.kinds.kind import ForeignKind

_CONTAINER = ("spec", "container")
"""The design writes the empty block without a value."""


def _kind(kind: str, model: str, lower: str, summary: str, continued: str = "") -> ForeignKind:
    """Return a kind whose model and lowering are in the modules that the arguments name."""
    return ForeignKind(
        API_VERSION,
        kind,
        f"kaigen.dialects.substratus.{model}",
        summary,
        system="substratus",
        empty=(_CONTAINER,),
        lower_reference=f"kaigen.dialects.substratus.{lower}",
        shares_names=True,
        continued_reference=f"kaigen.dialects.substratus.{continued}" if continued else "",
    )


DIALECT = Dialect(
    name="substratus",
    title="Substratus",
    settings="kaigen.config.dialects:Substratus",
    kinds=(
        _kind("Model", "kinds:Model", "loading:lower_model", "Substratus' model, loaded or trained by a container"),
        _kind("Dataset", "kinds:Dataset", "loading:lower_dataset", "Substratus' dataset, loaded by a container"),
        _kind("Server", "kinds:Server", "serving:lower", "Substratus' server of a model"),
        _kind("ModelServer", "kinds:ModelServer", "serving:lower", "Substratus' server of a model, as first designed"),
        _kind("Notebook", "kinds:Notebook", "notebook:lower", "Substratus' notebook", "trainer:trainer_of"),
    ),
)
