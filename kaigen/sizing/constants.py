"""Bytes and sizes of weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

GIB = 2**30
"""Bytes of a GiB."""


@cache
def _file() -> dict[str, Any]:
    data: dict[str, Any] = json.loads((Path(__file__).parent / "constants.json").read_bytes())
    return data


@cache
def constant(name: str) -> float:
    """Return a constant of the memory model, in the unit of its entry."""
    value: float = _file()["kaigen"][name]["value"]
    return value


def quantized_bits() -> Mapping[str, float]:
    """Return the bits per weight of a linear layer, including scales, by quantization."""
    bits: Mapping[str, float] = _file()["quantizedBits"]["bits"]
    return bits


def room_for(weights: float, copies: int = 1) -> str:
    """Return a size of a volume with room for weights in GiB, tokenizer and other files, a number of times."""
    return f"{copies * (-(-int(weights * 11) // 10) + 2)}Gi"
