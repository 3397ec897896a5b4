"""Checks of single values: the atoms of a schema node.

Each check takes a value and returns None when it is valid, or else a list of one `Mismatch`.
"""

from __future__ import annotations

import binascii
import ipaddress
import re
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from kaigen.check import codes
from kaigen.core.text import describe
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.quantities import is_quantity
from kaigen.regex.pattern import matches

if TYPE_CHECKING:
    from kaigen.kubernetes.schema_nodes import Scalar

INT32 = 2**31
INT64 = 2**63
# Compiled by `re` at its first use: at import it would cost more than the module.
TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
# Descriptions of regular expressions that many schemas share.
KNOWN_PATTERNS = {
    r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$": "a duration such as 1h30m",
    r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$": "a duration such as 30s or 5m",
    r"^([0-9]+(s|m|h))+$": "a duration such as 1h30m",
    r"^(([0-9]+(s|m|h))+|Never)$": "a duration such as 1h30m, or Never",
    r"^([0-9]{1,5}(h|m|s|ms)){1,4}$": "a duration such as 1h30m",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$": "a DNS name in lower case",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": "a DNS label in lower case",
    r"^((100|[0-9]{1,2})%|[0-9]+)$": "a number or a percentage such as 10%",
}


Hint = Callable[[], str]
"""A hint that takes time to find, so it is found when it is read."""


class Mismatch:
    """A value that does not match its schema; the path grows from the leaf to the root."""

    __slots__ = ("_hint", "code", "message", "path")

    def __init__(self, code: str, message: str, hint: str | Hint = "", path: list[str | int] | None = None) -> None:
        self.code = code
        self.message = message
        self._hint = hint
        self.path: list[str | int] = path or []

    @property
    def hint(self) -> str:
        """How to fix it; empty if that is not known."""
        return self._hint if isinstance(self._hint, str) else self._hint()


Check = Callable[[object], "list[Mismatch] | None"]


def wrong_type(expected: str, value: object) -> list[Mismatch]:
    """Return the mismatch of a value of another type."""
    hint = ""
    if expected == "a string" and isinstance(value, (bool, int, float)):
        hint = f'{_QUOTE}"{str(value).lower() if isinstance(value, bool) else value}"'
    elif expected.startswith("an integer") and isinstance(value, str) and re.fullmatch("-?(?:0|[1-9][0-9]*)", value):
        hint = f"write it without quotes: {value}"
    elif expected == "true or false" and isinstance(value, str) and value.lower() in ("true", "false"):
        hint = f"write it without quotes: {value.lower()}"
    return [Mismatch(codes.WRONG_TYPE, f"must be {expected}, not {describe(value)}", hint)]


_QUOTE = "write it in quotes: "


def as_written(hint: str, raw: str | None) -> str:
    """Return a hint with the text of the file in place of its value: `0022` is text again, and not the number 18.

    Args:
        hint: the hint.
        raw: the text of the value in the file; None where it is unknown.
    """
    return f'{_QUOTE}"{raw}"' if raw and hint.startswith(_QUOTE) else hint


def anything(value: object) -> list[Mismatch] | None:
    """Accept every value."""
    return None


def string(value: object) -> list[Mismatch] | None:
    """Check for a string."""
    return None if isinstance(value, str) else wrong_type("a string", value)


def boolean(value: object) -> list[Mismatch] | None:
    """Check for true or false."""
    return None if value.__class__ is bool else wrong_type("true or false", value)


def number(value: object) -> list[Mismatch] | None:
    """Check for an integer or a float."""
    return None if value.__class__ in (int, float) else wrong_type("a number", value)


def int32(value: object) -> list[Mismatch] | None:
    """Check for a 32-bit integer."""
    if value.__class__ is int and -INT32 <= value < INT32:
        return None
    return _integer(value, "32 bits")


def int64(value: object) -> list[Mismatch] | None:
    """Check for a 64-bit integer."""
    if value.__class__ is int and -INT64 <= value < INT64:
        return None
    return _integer(value, "64 bits")


def _integer(value: object, size: str) -> list[Mismatch]:
    if value.__class__ is int:
        return [Mismatch(codes.OUT_OF_RANGE, f"{value} exceeds {size}")]
    return wrong_type("an integer", value)


def int_or_string(value: object) -> list[Mismatch] | None:
    """Check for a 32-bit integer, or a string such as a port name or a percentage."""
    if isinstance(value, str):
        return None
    if value.__class__ is int:
        return int32(value)
    return wrong_type("an integer or a string", value)


def quantity(value: object) -> list[Mismatch] | None:
    """Check for a quantity, as a string or a number."""
    if isinstance(value, str):
        if is_quantity(value.strip()):  # `Quantity.UnmarshalJSON` of apimachinery removes the spaces
            return None
        hint = ""
        if re.fullmatch(r"[0-9.]+ ?([KMGTPE]i?B|[kgt]i?b?|mi|[KMGTPE]I)", value):
            hint = "the units are k, M, G, T, P, E and Ki, Mi, Gi, Ti, Pi, Ei"
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not a quantity such as 500m or 16Gi", hint)]
    if value.__class__ is int or value.__class__ is float:
        return None
    return wrong_type("a quantity such as 500m or 16Gi", value)


def whole_quantity(value: object) -> list[Mismatch] | None:
    """Check for a quantity of a custom resource, where a number must be an integer."""
    if value.__class__ is float:
        return wrong_type("an integer or a string such as 500m", value)
    if isinstance(value, str) and value != value.strip():
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} has spaces around it", f"write {value.strip()}")]
    return quantity(value)


def time(value: object) -> list[Mismatch] | None:
    """Check for a time of RFC 3339."""
    if not isinstance(value, str):
        return wrong_type("a time such as 2026-11-21T10:00:00Z in quotes", value)
    if re.fullmatch(TIME, value):
        return None
    return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not a time such as 2026-11-21T10:00:00Z")]


def base64(value: object) -> list[Mismatch] | None:
    """Check for base64; values that SOPS encrypted are accepted."""
    if not isinstance(value, str):
        return wrong_type("a string in base64", value)
    if value.startswith("ENC["):
        return None
    try:
        # encoding/base64 of Go skips line breaks, and no other space.
        binascii.a2b_base64(value.replace("\n", "").replace("\r", ""), strict_mode=True)
    except ValueError:
        return [Mismatch(codes.BAD_VALUE, "is not valid base64")]
    return None


def ip_address(version: int) -> Check:
    """Return the check for an address of IP version 4 or 6."""

    def check(value: object) -> list[Mismatch] | None:
        try:
            if isinstance(value, str) and ipaddress.ip_address(value).version == version:
                return None
        except ValueError:
            pass
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not an IPv{version} address")]

    return check


ATOMS: dict[str, Check] = {
    "any": anything,
    "b": boolean,
    "byte": base64,
    "i": int64,
    "i32": int32,
    "ipv4": ip_address(4),
    "ipv6": ip_address(6),
    "is": int_or_string,
    "n": number,
    "q": quantity,
    "qi": whole_quantity,
    "s": string,
    "time": time,
}


def one_of(allowed: Collection[Scalar]) -> Check:
    """Return the check for one of the allowed values."""
    strings = frozenset(a for a in allowed if isinstance(a, str))

    def check(value: object) -> list[Mismatch] | None:
        if value.__class__ is str and value in strings:
            return None
        if any(value == a and value.__class__ is a.__class__ for a in allowed):
            return None
        shown = [str(a) for a in allowed if a != ""]
        hint = partial(did_you_mean, value, shown) if isinstance(value, str) else ""
        listed = shown[0] if len(shown) == 1 else f"one of {', '.join(shown)}"
        code = codes.BAD_VALUE if strings and isinstance(value, str) else codes.WRONG_TYPE
        return [Mismatch(code, f"must be {listed}, not {describe(value)}", hint)]

    return check


def matching(pattern: str) -> Check:
    """Return the check for a regular expression of RE2."""

    def check(value: object) -> list[Mismatch] | None:
        if not isinstance(value, str):
            return None
        if matches(pattern, value):
            return None
        form = KNOWN_PATTERNS.get(pattern)
        problem = f"is not {form}" if form else f"does not match {pattern}"
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} {problem}")]

    return check


def between(least: float | None, most: float | None) -> Check:
    """Return the check for the range of a number; strings pass, as in an int-or-string."""

    def check(value: object) -> list[Mismatch] | None:
        if value.__class__ is not int and value.__class__ is not float:
            return None
        if (least is None or value >= least) and (most is None or value <= most):
            return None
        return [Mismatch(codes.OUT_OF_RANGE, f"must be {bounds(least, most)}, not {value}")]

    return check


def long_enough(least: int | None, most: int | None) -> Check:
    """Return the check for the length of a string."""

    def check(value: object) -> list[Mismatch] | None:
        if not isinstance(value, str) or (least or 0) <= len(value) <= (len(value) if most is None else most):
            return None
        if not value:
            return [Mismatch(codes.OUT_OF_RANGE, "must not be empty")]
        return [Mismatch(codes.OUT_OF_RANGE, f"must have {bounds(least, most)} characters, not {len(value)}")]

    return check


def bounds(least: float | None, most: float | None) -> str:
    """Describe a range."""
    if most is None:
        return f"at least {least:g}"
    if least is None:
        return f"at most {most:.15g}"
    return f"between {least:g} and {most:.15g}"
