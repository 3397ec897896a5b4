"""What validation and lowering need of a document: plain data, and where each value was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from kaigen.core.json_types import FieldPath
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


class SourceField(Struct, frozen=True):
    """The place of a field that was written in another document than the spec, such as a ConfigMap that it names.

    Attributes:
        mark: the position.
        path: the field there, as in `data["config.yaml"].size`.
    """

    mark: Mark
    path: str


def find_source(
    path: Sequence[str | int], sources: Mapping[FieldPath, SourceField], origins: Mapping[FieldPath, FieldPath]
) -> SourceField | None:
    """Return the place of a field in another document; None when its own document has it.

    Args:
        path: the field of the spec.
        sources: fields that were written in other documents.
        origins: fields that were written in the spec's document; the longest prefix of a path decides.
    """
    field_path = tuple(path)
    for length in range(len(field_path), 0, -1):
        prefix = field_path[:length]
        if prefix in sources or prefix in origins:
            return sources.get(prefix)
    return None
