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


def load_config(root: str | Path = ".", environment: str = "") -> Config:
    """Read `kaigen.yaml` of a folder; the defaults when there is none.

    Args:
        root: the repository's folder.
        environment: name of one of the file's environments; empty for none.

    Raises:
        InputError: when the file is wrong, or has no such environment.
    """
    root = Path(root)
    path = root / FILE_NAME
    if not path.is_file() and not environment:
        return Config(root=root, images=default_images())
    known = _Known(path, environment)
    config = known.read(root)
    if config is None:
        from kaigen.config_file import read_config_file

        config = read_config_file(root, environment)
        known.write(config)
    return config


class _Known:
    """The settings that a file came to when it was last read, so that it need not be validated again."""

    def __init__(self, path: Path, environment: str) -> None:
        from hashlib import sha256

        from kaigen.cache import build_id, cache_folder

        folder = cache_folder()
        self._path: Path | None = None
        if folder is not None and path.is_file() and path.stat().st_size < 1 << 20:
            parts = (build_id().encode(), environment.encode(), path.read_bytes())
            name = sha256(b"\0".join(parts)).hexdigest()
            self._path = folder / "config" / f"{name[:32]}.json"

    def read(self, root: Path) -> Config | None:
        import json

        try:
            data = json.loads(self._path.read_bytes()) if self._path else None
            if not isinstance(data, dict):
                return None
            for name in ("specs", "values"):
                data[name] = tuple(data[name])
            return Config(**{**data, "root": root})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, config: Config) -> None:
        import json
        from dataclasses import asdict

        from kaigen.cache import replace_file

        if self._path is not None:
            replace_file(self._path, json.dumps({**asdict(config), "root": ""}).encode())
