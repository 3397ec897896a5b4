"""References that a resource may write under several names."""

from __future__ import annotations

from typing import Any

from kaigen.core.json_types import FieldPath
from kaigen.dialects.substratus.resource import SubstratusLowering


def one_of(given: list[tuple[str, Any, FieldPath]], lowering: SubstratusLowering) -> tuple[Any, FieldPath] | None:
    """Return the reference that a resource has under one of its names, with its field; None without one.

    Args:
        given: name of the field, its value, and the block that contains it.
        lowering: collects an error if several are set.
    """
    found = [(value, (*at, name)) for name, value, at in given if value is not None]
    if len(found) > 1:
        first, second = found[0][1], found[1][1]
        message = f"`{first[-1]}` and `{second[-1]}` mean the same"
        lowering.error("KG0412", message, second, "keep one of the two", key=True)
    return found[0] if found else None
