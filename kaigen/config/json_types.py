"""Types of plain data in settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
else:
    Json = Any  # msgspec reads annotations, and does not support recursive types

FieldPath = tuple[str | int, ...]
