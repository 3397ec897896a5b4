"""What validation and lowering need of a document: plain data, and where each value was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from kaigen.diagnostics.diagnostic import Mark


class Positioned(Protocol):
    """A document with positions."""

    @property
    def data(self) -> Any:
        """The document as plain data."""

    def mark(self, path: Sequence[str | int], *, key: bool = False) -> Mark:
        """Return the position of a path, or of the key at its end."""

    def raw(self, path: Sequence[str | int]) -> str | None:
        """Return a scalar as it was written; None when the path has no scalar."""


class Unplaced(Struct, frozen=True):
    """Plain data without positions.

    Attributes:
        data: the data.
    """

    data: Any

    def mark(self, path: Sequence[str | int], *, key: bool = False) -> Mark:
        """Return no position."""
        return Mark("")

    def raw(self, path: Sequence[str | int]) -> str | None:
        """Return None: how a scalar was written is not known."""
        return None


def name_of(path: Sequence[str | int]) -> str:
    """Return the end of a path that names something: `command[0]`, not `0`."""
    names = [index for index, part in enumerate(path) if isinstance(part, str)]
    last = names[-1] if names else 0
    return "".join(f"[{part}]" if isinstance(part, int) else part for part in path[last:])
