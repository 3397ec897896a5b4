"""Constants of the memory model, from `constants.json`, which explains each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


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
