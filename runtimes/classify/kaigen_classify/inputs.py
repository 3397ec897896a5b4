"""The images of a run: one file, a folder with its subfolders, or a list of paths."""

from __future__ import annotations

import os
from pathlib import Path

from kaigen_classify.errors import NotFound
from kaigen_classify.settings import Settings

SUFFIXES = frozenset(
    f".{name}" for name in ("jpg", "jpeg", "jpe", "jfif", "png", "gif", "webp", "bmp", "tif", "tiff", "avif")
)
"""Ends of the names of images in a folder. A file that is named itself may have any name."""


def is_single(settings: Settings) -> bool:
    """Return whether the input is one image, so that its result is one object."""
    return not settings.input.is_dir() and settings.input.suffix != ".txt"


def find_images(settings: Settings) -> list[Path]:
    """Return the images of this shard: every `shards`-th path, in the order of the names or of the list.

    Raises:
        NotFound: the input does not exist, or no shard has images.
    """
    path = settings.input
    try:
        if path.is_dir():
            found = _in_folder(path)
        elif path.suffix == ".txt":
            lines = path.read_text("utf-8").splitlines()
            found = [path.parent / line.strip() for line in lines if line.strip()]
        else:
            path.stat()
            found = [path]
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"{path} cannot be read: {_text(error)}") from None
    if not found:
        raise NotFound(f"{path} has no images")
    return found[settings.shard :: settings.shards]


def _in_folder(folder: Path) -> list[Path]:
    found = []
    for root, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in SUFFIXES:
                found.append(Path(root, name))
    return sorted(found)


def _raise(error: OSError) -> None:
    # Another user's `lost+found` is in the root of many volumes.
    if os.path.basename(error.filename or "") != "lost+found":
        raise error


def _text(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
