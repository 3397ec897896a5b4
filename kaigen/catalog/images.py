"""kaigen's own images."""

from __future__ import annotations

from kaigen.catalog.data import load


def default_images() -> dict[str, str]:
    """Return the references of kaigen's own images for this version, by name."""
    from kaigen import __version__

    return {name: ref.replace("{version}", __version__) for name, ref in load("images").items()}
