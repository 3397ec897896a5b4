"""Loading of `kaigen.yaml`, with a cache that spares an unchanged file its validation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kaigen.catalog.images import default_images
from kaigen.config.settings import FILE_NAME, Config, Override, pins_path

_MAX_CACHED_BYTES = 1 << 20


def find_root(start: Path) -> Path:
    """Return the nearest folder, from `start` upwards, that contains `kaigen.yaml`; `start` itself without one."""
    for folder in (start, *start.parents):
        # A folder or a broken link of that name is an error, not a reason to use the defaults.
        if os.path.lexists(folder / FILE_NAME):
            return folder
    return start


def load_config(root: str | Path = ".", environment: str = "") -> Config:
    """Return the settings in the `kaigen.yaml` of a folder; the defaults without that file.

    Args:
        root: the repository's folder.
        environment: name of one of the file's environments; empty for none.

    Raises:
        InputError: the file is invalid, or has no such environment.
    """
    root = Path(root)
    path = root / FILE_NAME
    if not os.path.lexists(path) and not environment:
        return Config(root=root, images=default_images())
    cache = _SettingsCache(path, environment)
    config = cache.read(root)
    if config is None:
        # Only a changed file is validated: pydantic takes longer to import than an unchanged render takes.
        from kaigen.config.merge import read_config

        config = read_config(root, environment)
        cache.write(config)
    return config


class _SettingsCache:
    """The settings of one environment, stored under the content of the files that they come from."""

    def __init__(self, path: Path, environment: str) -> None:
        from hashlib import sha256

        from kaigen.system.cache import build_id, cache_folder

        folder = cache_folder()
        self._path: Path | None = None
        if folder is not None and path.is_file() and path.stat().st_size < _MAX_CACHED_BYTES:
            pins = pins_path(path.parent, environment)
            pinned = pins.read_bytes() if environment and pins.is_file() else b""
            parts = (build_id().encode(), environment.encode(), path.read_bytes(), pinned)
            name = sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()
            self._path = folder / "config" / f"{name[:32]}.json"

    def read(self, root: Path) -> Config | None:
        """Return the stored settings; None when there are none, or they are damaged."""
        import msgspec

        try:
            data = msgspec.json.decode(self._path.read_bytes()) if self._path else None
            return _decoded(data, root) if isinstance(data, dict) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, config: Config) -> None:
        """Store settings."""
        if self._path is None:
            return
        import msgspec

        from kaigen.system.cache import replace_file

        replace_file(self._path, msgspec.json.encode(config, enc_hook=str))


def _decoded(data: dict[str, Any], root: Path) -> Config:
    """Return the settings from their JSON data; the classes of blocks are imported only for blocks that are there."""
    from msgspec import convert

    data["root"] = root
    data["overrides"] = convert(data["overrides"], tuple[Override, ...])
    if data["patches"]:
        from kaigen.config.block_settings import ObjectPatch

        data["patches"] = convert(data["patches"], tuple[ObjectPatch, ...])
    if data["gitops"] is not None:
        from kaigen.config.gitops_settings import GitOpsSettings

        data["gitops"] = convert(data["gitops"], GitOpsSettings)
    if data["external_secrets"] is not None:
        from kaigen.config.block_settings import ExternalSecretsSettings

        data["external_secrets"] = convert(data["external_secrets"], ExternalSecretsSettings)
    if data["publish"] is not None:
        from kaigen.config.block_settings import PublishSettings

        data["publish"] = convert(data["publish"], PublishSettings)
    for name, default in zip(Config.__struct_fields__, Config.__struct_defaults__, strict=True):
        if isinstance(default, tuple):
            data[name] = tuple(data[name])
    return Config(**data)
