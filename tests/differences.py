"""List the differences of two trees of plain data by path, because pytest abbreviates deep objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MAX_LISTED = 10


def differences(actual: Any, expected: Any, path: str = "") -> Iterator[str]:
    """Return each difference, including types: 1 is not true, and a number is not its text."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            here = f"{path}.{key}"
            if key not in actual:
                yield f"{here}: missing, expected {expected[key]!r}"
            elif key not in expected:
                yield f"{here}: not expected: {actual[key]!r}"
            else:
                yield from differences(actual[key], expected[key], here)
    elif isinstance(actual, list) and isinstance(expected, list):
        if len(actual) != len(expected):
            yield f"{path}: {len(actual)} entries, expected {len(expected)}"
        for index, (one, other) in enumerate(zip(actual, expected, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
    elif not _equal(actual, expected):
        yield f"{path}: {actual!r}, expected {expected!r}"


def _equal(one: Any, other: Any) -> bool:
    """Compare values; numbers are 64-bit floats, as in Helm."""
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, int | float) and isinstance(other, int | float):
        return float(one) == float(other)
    return bool(one == other)


def assert_same(actual: Any, expected: Any) -> None:
    """Compare two trees.

    Raises:
        AssertionError: they differ. The message lists the first differences.
    """
    __tracebackhide__ = True
    found = list(differences(actual, expected))
    if found:
        raise AssertionError("\n".join(["the data differs:", *found[:_MAX_LISTED]]))
