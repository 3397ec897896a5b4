"""Numbers as the format stores them: f32, and q40 in blocks of 32."""

from __future__ import annotations

import numpy as np

from kaigen_convert.shape import BLOCK, BLOCK_BYTES, F32
from kaigen_convert.tensors import Floats

_HALF = BLOCK // 2


def encoded(values: Floats, kind: int) -> bytes:
    """Return numbers as bytes.

    Args:
        values: flat; for q40 a multiple of 32 of them.
        kind: number of the type.

    Raises:
        ValueError: a number is not finite, or too large for the scale of a block.
    """
    if kind != F32:
        return q40(values)
    if not np.isfinite(values).all():
        raise ValueError("numbers that are not finite")
    return values.astype("<f4", copy=False).tobytes()


def q40(values: Floats) -> bytes:
    """Return numbers in blocks of 32: a scale in f16, then 4 bits for each.

    The scale makes the number of the largest magnitude -8, so that it is exact. The low bits of a byte are those of the
    first half of the block. A scale that is 0 in f16 stands for 32 zeros.

    Raises:
        ValueError: a number is not finite, or too large for a scale in f16.
    """
    blocks = values.reshape(-1, BLOCK)
    most, least = blocks.max(axis=1), blocks.min(axis=1)
    scales = np.where(-least > most, least, most) / np.float32(-8)
    with np.errstate(over="ignore"):
        halves = scales.astype("<f2")
    if not np.isfinite(halves).all():
        raise ValueError("numbers that are not finite or too large")
    with np.errstate(divide="ignore", over="ignore"):
        factors = np.float32(1) / scales
    factors[~np.isfinite(factors)] = 0  # Of blocks of zeros, and of numbers so small that the scale is 0.
    levels = blocks * factors[:, np.newaxis]
    levels += np.float32(8.5)
    np.clip(levels, 0, 15, out=levels)
    bits = levels.astype(np.uint8)
    packed = np.empty((len(blocks), BLOCK_BYTES), np.uint8)
    packed[:, :2] = halves.view(np.uint8).reshape(-1, 2)
    np.left_shift(bits[:, _HALF:], 4, out=packed[:, 2:])
    packed[:, 2:] |= bits[:, :_HALF]
    return packed.tobytes()
