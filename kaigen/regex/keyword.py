"""The keyword `pattern` for jsonschema, which by itself uses Python's `re` without limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jsonschema import ValidationError

from kaigen.regex import pattern as linear

Keyword = Callable[[object, str, object, object], Iterator[ValidationError]]


def pattern_keyword(matches: Callable[[str, str], bool] = linear.matches) -> Keyword:
    """Return the keyword.

    Args:
        matches: whether a text matches a pattern; by default in linear time, for patterns of users.
    """

    def check(_: object, pattern: str, value: object, __: object) -> Iterator[ValidationError]:
        if isinstance(value, str) and not matches(pattern, value):
            yield ValidationError(f"{value!r} does not match {pattern!r}")

    return check
