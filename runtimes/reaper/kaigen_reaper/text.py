"""Formats and parses durations and times, and prints messages."""

from __future__ import annotations

import re
import sys
import threading
from datetime import UTC, datetime

_printing = threading.Lock()
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_FACTORS = (86400, 3600, 60, 1)


def say(message: str) -> None:
    """Print one line on standard error."""
    line = " ".join(message.split()) + "\n"
    with _printing:
        sys.stderr.write(line)
        sys.stderr.flush()


def parse_duration(text: str) -> float:
    """Return the seconds of `2h`, `1h30m`, `90s` or a bare number of seconds.

    Raises:
        ValueError: the text is not one, or not more than zero.
    """
    match = _DURATION.fullmatch(text.strip())
    if text.strip().isdecimal():
        seconds = int(text)
    elif match is not None and match.group(0):
        seconds = sum(int(n or 0) * factor for n, factor in zip(match.groups(), _FACTORS, strict=True))
    else:
        raise ValueError(f"not a duration: {text!r} (try 90s or 1h30m)")
    if not 0 < seconds < 10**9:
        raise ValueError(f"not a duration above zero: {text!r}")
    return float(seconds)


def duration(seconds: float) -> str:
    """Return a time span as text: `45s`, `12m30s`, `2h05m`, `3d04h`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def parse_time(text: str) -> float:
    """Return the Unix time of a time in RFC 3339.

    Raises:
        ValueError: the text is not one, or has no time zone.
    """
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"no time zone: {text!r}")
    return found.timestamp()


def timestamp(when: float) -> str:
    """Return a Unix time in RFC 3339, in UTC with microseconds, as Kubernetes' MicroTime."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plural(count: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
