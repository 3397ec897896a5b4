"""Every dialect, and every kind of document that kaigen reads. A new dialect is one entry of `DIALECTS`."""

from __future__ import annotations

from collections.abc import Iterable

from kaigen.dialects import ai_operator, ephemeral_gpu, kaito, koldun, substratus
from kaigen.dialects.dialect import Dialect
from kaigen.kinds.builtin import BUILTIN_KINDS
from kaigen.kinds.entry import find_entry
from kaigen.kinds.kind import Kind

DIALECTS: tuple[Dialect, ...] = (
    ai_operator.DIALECT,
    ephemeral_gpu.DIALECT,
    kaito.DIALECT,
    koldun.DIALECT,
    substratus.DIALECT,
)


def kinds_of(dialects: Iterable[Dialect]) -> tuple[Kind, ...]:
    """Return kaigen's own kinds and those of the dialects."""
    return (*BUILTIN_KINDS, *(kind for dialect in dialects for kind in dialect.kinds))


KINDS = kinds_of(DIALECTS)


def find_kind(api_version: str | None, kind: str | None) -> Kind | None:
    """Return the kind of a document; None when neither kaigen nor a dialect has it."""
    return find_entry(api_version, kind, KINDS)
