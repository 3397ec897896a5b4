"""Ten images of every kind that people have, and what is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image

ORIENTATION = 0x0112


def colours(width: int, height: int, seed: int) -> Any:
    """Return an image in RGB, with shapes of several sizes."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand((1, 3, 7, 5), generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")
    noise = torch.rand((1, 3, height, width), generator=generator)
    pixels = (smooth * 0.8 + noise * 0.2).clamp(0, 1).mul(255).to(torch.uint8)[0].permute(1, 2, 0)
    return Image.frombytes("RGB", (width, height), bytes(pixels.contiguous().flatten().tolist()))


def _plain(path: Path) -> Any:
    image = colours(421, 300, 1)
    image.save(path, quality=90)
    with Image.open(path) as saved:
        return saved.convert("RGB")


def _upright(orientation: int, undo: Any) -> Callable[[Path], Any]:
    def make(path: Path) -> Any:
        image = colours(260, 512, 2)
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        image.transpose(undo).save(path, exif=exif)
        return image

    return make


def _grey(path: Path) -> Any:
    image = colours(300, 300, 4).convert("L")
    image.save(path)
    return Image.merge("RGB", (image, image, image))


def _grey_of_16_bits(path: Path) -> Any:
    image = colours(250, 240, 5).convert("L")
    wide = b"".join(bytes((value, value)) for value in image.tobytes())  # value * 257
    Image.frombytes("I;16", image.size, wide).save(path)
    return Image.merge("RGB", (image, image, image))


def _cmyk(path: Path) -> Any:
    colours(333, 400, 6).convert("CMYK").save(path, quality=95)
    with Image.open(path) as saved:
        assert saved.mode == "CMYK"
        return saved.convert("RGB")


def _animated(path: Path) -> Any:
    first = colours(240, 250, 7).quantize(64)
    first.save(path, save_all=True, append_images=[colours(240, 250, 8).quantize(64)])
    return first.convert("RGB")


def _palette(path: Path) -> Any:
    image = colours(240, 300, 9).quantize(32)
    image.save(path, transparency=0)
    return image.convert("RGB")


def _alpha(path: Path) -> Any:
    image = colours(512, 256, 10)
    half = image.copy()
    half.putalpha(Image.new("L", image.size, 128))
    half.save(path)
    return image


def _tiny(path: Path) -> Any:
    image = colours(3, 2, 11)
    image.save(path)
    return image


PICTURES: dict[str, Callable[[Path], Any]] = {
    "plain.jpg": _plain,
    "rotated.png": _upright(6, Image.Transpose.ROTATE_90),
    "mirrored.png": _upright(2, Image.Transpose.FLIP_LEFT_RIGHT),
    "grey.png": _grey,
    "grey-of-16-bits.png": _grey_of_16_bits,
    "cmyk.jpg": _cmyk,
    "animated.gif": _animated,
    "palette.png": _palette,
    "alpha.png": _alpha,
    "tiny.bmp": _tiny,
}
"""Functions that write a file and return what it shows, by its name."""


def broken(folder: Path) -> dict[str, str]:
    """Write files that cannot be read, and return a word of the reason of each."""
    plain = folder / "whole.jpg"
    _plain(plain)
    content = plain.read_bytes()
    plain.unlink()
    files = {
        "cut.jpg": (content[: len(content) // 2], "truncated"),
        "text.jpg": (b"placeholder for a sample image\n" * 9, "cannot identify image"),
        "empty.jpg": (b"", "cannot identify image"),
        "figure.png": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "cannot identify image"),
    }
    for name, (made, _) in files.items():
        (folder / name).write_bytes(made)
    Image.new("1", (20_000, 20_000)).save(folder / "bomb.png")
    Image.new("L", (2, 3000)).save(folder / "narrow.png")
    (folder / "folder.png").mkdir()
    reasons = {name: reason for name, (_, reason) in files.items()}
    return {**reasons, "bomb.png": "20000x20000 pixels; the limit is", "narrow.png": "too narrow"}
