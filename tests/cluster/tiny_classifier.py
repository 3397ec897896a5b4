"""Random weights of mobilenet_v3_small and an image, written without PyTorch and Pillow."""

from __future__ import annotations

import json
import math
import random
import struct
import zlib
from array import array
from collections.abc import Iterator

Shape = tuple[int, ...]

_ROWS = (
    (16, 3, 16, 16, 8, 1),
    (16, 3, 72, 24, 0, 2),
    (24, 3, 88, 24, 0, 1),
    (24, 5, 96, 40, 24, 2),
    (40, 5, 240, 40, 64, 1),
    (40, 5, 240, 40, 64, 1),
    (40, 5, 120, 48, 32, 1),
    (48, 5, 144, 48, 40, 1),
    (48, 5, 288, 96, 72, 2),
    (96, 5, 576, 96, 144, 1),
    (96, 5, 576, 96, 144, 1),
)
"""Input, kernel, width, output, squeezed width and stride of each block (source: torchvision/models/mobilenetv3.py)."""


def _convolution(name: str, *shape: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.0.weight", shape
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.1.{part}", (shape[0],)


def _shapes() -> Iterator[tuple[str, Shape]]:
    yield from _convolution("features.0", 16, 3, 3, 3)
    for number, (fed, kernel, wide, made, squeezed, _) in enumerate(_ROWS, 1):
        block, layer = f"features.{number}.block", 0
        if wide != fed:
            yield from _convolution(f"{block}.0", wide, fed, 1, 1)
            layer += 1
        yield from _convolution(f"{block}.{layer}", wide, 1, kernel, kernel)
        layer += 1
        if squeezed:
            for name, (out, into) in {"fc1": (squeezed, wide), "fc2": (wide, squeezed)}.items():
                yield f"{block}.{layer}.{name}.weight", (out, into, 1, 1)
                yield f"{block}.{layer}.{name}.bias", (out,)
            layer += 1
        yield from _convolution(f"{block}.{layer}", made, wide, 1, 1)
    yield from _convolution("features.12", 576, 96, 1, 1)
    for name, out, into in (("classifier.0", 1024, 576), ("classifier.3", 1000, 1024)):
        yield f"{name}.weight", (out, into)
        yield f"{name}.bias", (out,)


def weights() -> bytes:
    """Return a safetensors file: the length of a JSON header, the header, and the numbers."""
    generator = random.Random(7)
    header, content = {}, bytearray()
    for name, shape in _shapes():
        count = math.prod(shape)
        if len(shape) == 1:
            value = 1.0 if name.endswith(("1.weight", "running_var")) else 0.0
            numbers = array("f", [value]) * count
        else:
            spread = 2 * math.sqrt(6 / math.prod(shape[1:]))
            numbers = array("f", ((generator.random() - 0.5) * spread for _ in range(count)))
        begin = len(content)
        content += numbers.tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": (begin, len(content))}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(content)


def image(width: int = 320, height: int = 240) -> bytes:
    """Return a PNG in RGB with a pattern of colours."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(
        b"\0" + bytes(value for x in range(width) for value in (x % 256, y % 256, (x * y) % 256)) for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
