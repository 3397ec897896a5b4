"""Images as the networks read them: upright, in RGB, resized and cropped as torchvision does."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from kaigen_classify.errors import BadImage
from kaigen_classify.settings import Settings

CROP = 224
"""Edge of what the networks read (source: torchvision's presets of the weights)."""

Image.init()
_FORMATS = [name for name in ("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF") if name in Image.OPEN]
"""Formats that are read. Others, such as EPS, start programs or are not images."""

Image.MAX_IMAGE_PIXELS = None  # `open_image` has a limit of its own.


def open_image(path: Path, settings: Settings) -> Any:
    """Return the first frame of an image, upright and in RGB.

    Alpha is dropped, as by torchvision's own loader; 16 bits of grey become 8.

    Raises:
        BadImage: the file is missing, broken, or too large.
    """
    try:
        size = os.stat(path).st_size
        if size > settings.max_bytes:
            raise BadImage(f"{path} has {size} bytes; the limit is {settings.max_bytes}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about broken metadata, and palettes with transparency
            with Image.open(path, formats=_FORMATS) as image:
                width, height = image.size
                if width * height > settings.max_pixels:
                    raise BadImage(f"{path} has {width}x{height} pixels; the limit is {settings.max_pixels}")
                image.load()
                upright = ImageOps.exif_transpose(image)
    except BadImage:
        raise
    except MemoryError:
        raise BadImage(f"{path} needs more memory than there is") from None
    except OSError as error:
        reason = error.strerror or str(error).replace(f" {str(path)!r}", "")
        raise BadImage(f"{path} cannot be read: {reason}") from None
    except Exception as error:  # Pillow's decoders raise about anything for broken files.
        raise BadImage(f"{path} is broken: {type(error).__name__}: {error}") from None
    return _in_rgb(upright)


def _in_rgb(image: Any) -> Any:
    if image.mode.startswith("I;16") or image.mode == "I":
        # Pillow clips these to 255; 65535 is white.
        image = image.convert("I").point(lambda value: value / 257).convert("L")
    return image.convert("RGB")


def resize_and_crop(image: Any, shorter: int, path: Path) -> bytes:
    """Return the bytes of the middle of an image: `CROP` rows of `CROP` pixels of three bytes.

    The same as torchvision's `resize(shorter, BILINEAR, antialias=True)` and `center_crop(CROP)`.

    Args:
        image: an image in RGB.
        shorter: length to which its shorter edge is resized.
        path: its path, for errors.

    Raises:
        BadImage: the image is so narrow that the longer edge would become too long.
    """
    width, height = image.size
    short, long = sorted((width, height))
    longer = int(shorter * long / short)
    if longer > 1 << 16:
        raise BadImage(f"{path} has {width}x{height} pixels, which is too narrow")
    size = (shorter, longer) if width <= height else (longer, shorter)
    if image.size != size:
        image = image.resize(size, Image.Resampling.BILINEAR)
    left, top = (round((edge - CROP) / 2.0) for edge in size)
    pixels: bytes = image.crop((left, top, left + CROP, top + CROP)).tobytes()
    return pixels


def read_picture(path: Path, settings: Settings) -> bytes:
    """Return the pixels of an image as the network reads them.

    Raises:
        BadImage: it cannot be read.
    """
    return resize_and_crop(open_image(path, settings), settings.resize, path)
