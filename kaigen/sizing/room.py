"""Sizes of volumes for weights."""

from __future__ import annotations

GIB = 2**30
"""Bytes of a GiB."""


def room_for(weights: float, copies: int = 1) -> str:
    """Return a size of a volume with room for weights in GiB, tokenizer and other files, a number of times."""
    return f"{copies * (-(-int(weights * 11) // 10) + 2)}Gi"
