"""A dialect: a foreign API whose documents kaigen reads unchanged and lowers to its own kinds."""

from __future__ import annotations

from dataclasses import dataclass

from kaigen.kinds.kind import ForeignKind


@dataclass(frozen=True, slots=True)
class Dialect:
    """A foreign API.

    Attributes:
        name: short name, as in `ai-operator.Job`; the `system` of its kinds.
        title: name for people.
        kinds: every kind and version that kaigen reads.
    """

    name: str
    title: str
    kinds: tuple[ForeignKind, ...]
