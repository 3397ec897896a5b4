"""Models whose size kaigen knows: those of the catalogue, and those whose spec has `facts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.presets import Preset, find_preset
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kubernetes.quantities import units
from kaigen.sizing.config_json import facts_of_config
from kaigen.sizing.constants import GIB
from kaigen.sizing.facts import ModelFacts, facts_of
from kaigen.sizing.problem import PlanError

if TYPE_CHECKING:
    from kaigen.kinds.serving import Facts


class KnownModel(Struct, frozen=True):
    """A model whose size kaigen knows.

    Attributes:
        facts: its shape and size.
        preset: its entry in the catalogue; None when it has none.
        described: whether the facts are those of the spec, rather than of the catalogue.
    """

    facts: ModelFacts
    preset: Preset | None = None
    described: bool = False

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.facts.name

    @property
    def weights_bytes(self) -> int:
        """Size of the weights that are downloaded, in bytes."""
        return int(self.facts.weights * GIB)


def model_of_preset(preset: Preset) -> KnownModel:
    """Return a model of the catalogue."""
    return KnownModel(facts_of(preset), preset)


def model_of_repository(repo: str, catalog: Catalog) -> KnownModel | None:
    """Return the model of a repository on the Hub; None when the catalogue does not have it."""
    preset = find_preset(repo, catalog)
    return model_of_preset(preset) if preset is not None else None


def model_of_facts(facts: Facts, name: str, preset: Preset | None, path: FieldPath) -> KnownModel:
    """Return the model that a block `facts` describes.

    Args:
        facts: the block, with the content of its `config.json`.
        name: of the model, for messages.
        preset: its entry in the catalogue, for the flags of the engine.
        path: the spec's field of the block.

    Raises:
        ProblemError: a number is missing or impossible.
    """
    if isinstance(facts.config, str):
        raise ProblemError("KG1103", f"`{facts.config}` was not read", (*path, "config"), "load the spec from a file")
    size = units(facts.weights) or 0
    if size <= 0:
        raise ProblemError("KG1103", f"the weights have {facts.weights} bytes", (*path, "weights"), "set their size")
    try:
        return KnownModel(facts_of_config(facts.config, name=name, weights=size / GIB), preset, described=True)
    except PlanError as error:
        raise ProblemError(error.problem.code, str(error), (*path, "config"), error.hint) from None
