"""A dialect: a foreign API whose documents kaigen reads unchanged and lowers to its own kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.kinds.entry import import_reference
from kaigen.kinds.kind import ForeignKind

if TYPE_CHECKING:
    from kaigen.catalog.presets import Preset
    from kaigen.sizing.facts import Hardware, ModelFacts


class Estimate(Struct, frozen=True):
    """What a foreign system derives for a model in place of kaigen's plan.

    Attributes:
        version: of the foreign system.
        text: for people, one line.
        data: for programs.
    """

    version: str
    text: str
    data: Mapping[str, int | str]


class Dialect(Struct, frozen=True):
    """A foreign API.

    Attributes:
        name: short name, as in `ai-operator.Job`; the `system` of its kinds.
        title: name for people.
        kinds: every kind and version that kaigen reads.
        estimator: `module:function` of the foreign system's own sizing; empty for none. Only kaigen's own dialects have
            one, because `kaigen plan` has an option for each.
        settings: `module:class` of its block in `dialects` of kaigen.yaml, a `kaigen.kinds.block.Block`; empty for
            none. A lowering finds it as plain data in `LoweringContext.settings`, by the dialect's name.
    """

    name: str
    title: str
    kinds: tuple[ForeignKind, ...]
    estimator: str = ""
    settings: str = ""

    def estimates(
        self, preset: Preset | None, facts: ModelFacts, hardware: Hardware, context: int | None
    ) -> Sequence[Estimate]:
        """Return what the foreign system derives for a model, by version; nothing without an estimator."""
        if not self.estimator:
            return ()
        found: Sequence[Estimate] = import_reference(self.estimator)(preset, facts, hardware, context)
        return found
