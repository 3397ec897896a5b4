"""The numbers that the arithmetic rests on, from `constants.json`, where each says what it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _file() -> dict[str, Any]:
    import json

    data: dict[str, Any] = json.loads((Path(__file__).parent / "constants.json").read_bytes())
    return data


@cache
def constant(name: str) -> float:
    """A constant of kaigen's own arithmetic, in the unit that its entry names."""
    value: float = _file()["kaigen"][name]["value"]
    return value


def quantized_bits() -> Mapping[str, float]:
    """Bits of a weight of a linear layer, with its scales, by quantization."""
    bits: Mapping[str, float] = _file()["quantizedBits"]["bits"]
    return bits
