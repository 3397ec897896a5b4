"""The PersistentVolumeClaims that an object makes, in the lists that the table of object kinds names."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, entries
from kaigen.kubernetes.value_paths import steps_of, values_at


def listed_claims(obj: Object) -> Iterator[tuple[FieldPath, Object]]:
    """Yield the templates of the claims that an object makes, with their places."""
    for dotted in kind_of(obj).claim_templates:
        for path, found in values_at(obj, steps_of(dotted)):
            for number, claim in entries(found):
                yield (*path, number), claim
