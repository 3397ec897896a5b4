"""kaigen's own images."""

from __future__ import annotations

from kaigen import __version__
from kaigen.catalog.data import load


def default_images() -> dict[str, str]:
    """Return the references of kaigen's own images for this version, by name."""
    return {name: ref.replace("{version}", __version__) for name, ref in load("images").items()}
