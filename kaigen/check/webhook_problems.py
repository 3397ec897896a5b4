"""What the rules of webhooks share: their problems, and counts of pods."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object

Findings = Iterator[Problem]
MOST_PODS = 2**31 - 1
"""What the webhooks accept of replicas, times pods."""


def conflict(message: str, path: FieldPath, hint: str = "") -> Problem:
    """Return the problem of fields that contradict each other."""
    return Problem(codes.FIELD_CONFLICT, message, path, hint)


def bad_value(message: str, path: FieldPath, hint: str = "") -> Problem:
    """Return the problem of a value that the webhook refuses."""
    return Problem(codes.BAD_VALUE, message, path, hint)


def count_of(body: Object, field: str, default: int | None = None) -> int | None:
    """Return a count; the default where it is not set, and None for a value of another type."""
    value = body.get(field)
    return default if value is None else value if isinstance(value, int) and not isinstance(value, bool) else None
