"""What one run is for: the settings of `kaigen.yaml` with those of an environment over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

FILE_NAME = "kaigen.yaml"
Format = Literal["manifests", "chart", "both"]


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one run: the file's, with those of an environment over them.

    Attributes:
        root: the repository's folder; paths are relative to it.
        environment: its name; empty for none.
        kubernetes: target version.
        profile: name of the profile.
        namespace: of specs that name none.
        images: kaigen's own images by name.
        values: overrides by app, the environment's after the file's.
        specs: files and folders.
        output: folder that is rendered into, the environment's name included.
        format: what is written.
        passthrough: let plain Kubernetes objects through.
    """

    root: Path = Path()
    environment: str = ""
    kubernetes: str = "1.36"
    profile: str = "generic"
    namespace: str = "default"
    images: Mapping[str, str] = field(default_factory=dict)
    values: tuple[Mapping[str, Mapping[str, Any]], ...] = ()
    specs: tuple[str, ...] = ("specs",)
    output: str = "rendered"
    format: Format = "manifests"
    passthrough: bool = False


def default_images() -> dict[str, str]:
    """kaigen's own images, of this version."""
    from kaigen import __version__
    from kaigen.catalog.data import load

    return {name: ref.replace("{version}", __version__) for name, ref in load("images").items()}


def find_root(start: Path) -> Path:
    """The nearest folder, from `start` upwards, that holds `kaigen.yaml`; `start` itself when none does."""
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder
    return start


def load_config(root: Path, environment: str = "") -> Config:
    """Read `kaigen.yaml` of a folder; the defaults when there is none.

    Args:
        root: the repository's folder.
        environment: name of one of the file's environments; empty for none.

    Raises:
        InputError: when the file is wrong, or has no such environment.
    """
    from kaigen.config_file import read_config_file

    return read_config_file(root, environment)
