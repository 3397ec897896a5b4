"""Lines for the log."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(" ".join(message.split()) + "\n")
    sys.stderr.flush()


def size(count: int) -> str:
    """Return bytes for people, such as `1.5 GiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
