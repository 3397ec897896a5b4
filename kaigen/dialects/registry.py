"""What a dialect is, kaigen's own dialects, and every kind of document that kaigen itself reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kaigen.kinds.builtin import BUILTIN_KINDS
from kaigen.kinds.entry import OWN_SYSTEM, find_entry, import_reference
from kaigen.kinds.kind import ForeignKind, Kind

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


GROUP: Final = "kaigen.dialects"
"""Group of entry points that name a dialect."""

OWN: Final[Mapping[str, str]] = {
    "ai-operator": "kaigen.dialects.ai_operator:DIALECT",
    "ephemeral-gpu": "kaigen.dialects.ephemeral_gpu:DIALECT",
    "kaito": "kaigen.dialects.kaito:DIALECT",
    "koldun": "kaigen.dialects.koldun:DIALECT",
    "substratus": "kaigen.dialects.substratus:DIALECT",
}
"""The entry points of `GROUP` in kaigen's own pyproject.toml: reading those of all installed packages takes time."""

RESERVED: Final = frozenset({OWN_SYSTEM, *OWN})
"""Names that no package may give to a dialect."""


@cache
def own_dialects() -> tuple[Dialect, ...]:
    """Return kaigen's own dialects."""
    return tuple(import_reference(reference) for reference in OWN.values())


def kinds_of(dialects: Iterable[Dialect]) -> tuple[Kind, ...]:
    """Return kaigen's own kinds and those of the dialects."""
    return (*BUILTIN_KINDS, *(kind for dialect in dialects for kind in dialect.kinds))


@cache
def own_kinds() -> tuple[Kind, ...]:
    """Return kaigen's own kinds and those of its own dialects."""
    return kinds_of(own_dialects())


def find_kind(api_version: str | None, kind: str | None) -> Kind | None:
    """Return the kind of a document; None when neither kaigen nor one of its own dialects has it."""
    return find_entry(api_version, kind, BUILTIN_KINDS) or find_entry(api_version, kind, own_kinds())
