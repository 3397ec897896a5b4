"""Fields of a spec that were written in another document, such as a ConfigMap that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Mark


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
