"""Bytes and sizes of weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kaigen.catalog.engines import Version, parse_version

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


def has_since(what: str, version: Version | None) -> bool:
    """Return whether a version of vLLM, the newest for None, does what an entry of `since` is about."""
    return version is None or version >= parse_version(_file()["since"][what]["version"])


def weight_padding(method: str) -> float:
    """Return the loaded size of weights by their size on disk, for a quantization; 1 for no quantization."""
    factors: Mapping[str, float] = _file()["weightPadding"]["factors"]
    return factors.get(method, 1.0)


def quantized_bits() -> Mapping[str, float]:
    """Return the bits of a 16-bit weight of a linear layer, including scales, by the method that quantizes it."""
    bits: Mapping[str, float] = _file()["quantizedBits"]["bits"]
    return bits


def unsized_methods() -> Sequence[str]:
    """Return the methods that quantize a part of 16-bit weights which is not known here."""
    names: Sequence[str] = _file()["quantizedBits"]["unsized"]
    return names


def cache_dtypes() -> Sequence[str]:
    """Return the dtypes of the cache in versions of vLLM whose parser does not list them."""
    names: Sequence[str] = _file()["cacheBits"]["names"]
    return names


def cache_bits(dtype: str) -> float:
    """Return the bits of a value in the cache, including scales; 16 for a dtype whose size is unknown."""
    bits: Mapping[str, float] = _file()["cacheBits"]["bits"]
    return next((size for name, size in bits.items() if dtype.startswith(name)), 16)


def room_for(weights: float, copies: int = 1) -> str:
    """Return a size of a volume with room for weights in GiB, tokenizer and other files, a number of times."""
    return f"{copies * (-(-int(weights * 11) // 10) + 2)}Gi"
