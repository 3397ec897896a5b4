"""Parses durations, and prints messages."""

from __future__ import annotations

import re
import sys

_CHECKSUM = re.compile(r"[0-9a-f]{64}")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_FACTORS = (3600, 60, 1)


def say(message: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(" ".join(message.split()) + "\n")
    sys.stderr.flush()


def parse_checksum(text: str) -> bytes:
    """Return the bytes of a SHA-256 checksum in hex.

    Raises:
        ValueError: the text is not one.
    """
    if _CHECKSUM.fullmatch(text) is None:
        raise ValueError(f"not a SHA-256 checksum: {text!r} (64 hex digits)")
    return bytes.fromhex(text)


def parse_duration(text: str) -> float:
    """Return the seconds of `2h`, `1h30m`, `90s` or a bare number of seconds.

    Raises:
        ValueError: the text is not one.
    """
    match = _DURATION.fullmatch(text.strip())
    if text.strip().isdecimal():
        return float(text)
    if match is None or not match.group(0):
        raise ValueError(f"not a duration: {text!r} (try 90s or 1h30m)")
    return float(sum(int(n or 0) * factor for n, factor in zip(match.groups(), _FACTORS, strict=True)))
