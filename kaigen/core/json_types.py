"""Types of plain data, and of places in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
else:
    Json = Any  # msgspec reads annotations, and does not support recursive types
"""A value of JSON: everything that Kubernetes can store."""

JsonObject = dict[str, Json]
"""A mapping of JSON: an object, or a fragment of one, whose values have no narrower type."""

Step = str | int
"""A key or a list index."""

FieldPath = tuple[Step, ...]
"""Keys and list indices from the root of a document or object."""
