"""kaigen's own images."""

from __future__ import annotations

from kaigen import __version__
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


def default_images() -> dict[str, str]:
    """Return the references of kaigen's own images for this version, by name."""
    return {name: ref.replace("{version}", __version__) for name, ref in yaml_files.load("images").items()}
