"""kaigen's own dialects, and every kind of document that kaigen itself reads.

A dialect is the value of an entry point of the group `kaigen.dialects`, kaigen's own as those of installed packages
(`kaigen.dialects.packages`). Its module is imported when the first document comes that is none of kaigen's own kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from kaigen.dialects.dialect import Dialect
from kaigen.kinds.builtin import BUILTIN_KINDS
from kaigen.kinds.entry import OWN_SYSTEM, find_entry, import_reference
from kaigen.kinds.kind import Kind

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
