"""Loading of `kaigen.yaml`, with a cache that spares an unchanged file its validation."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from kaigen.config.settings import FILE_NAME, LOCK_NAME, Config, LockRef, pins_path
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.errors import InputError
from kaigen.files import read_file
from kaigen.system.cache import build_id, cache_folder, replace_file
from kaigen.system.lazy_import import lazy_imports
from kaigen.system.limits import GENERATED_FILE_BYTES

with lazy_imports():
    from kaigen.config import catalog_rows, dialects, merge, missing


RESTORE = "restore it from Git, or delete it and run `kaigen lock`"

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
        InputError: the file is invalid, or has no such environment; the lock cannot be read.
    """
    config = _load(Path(root), environment)
    lock = _lock_ref(config.root)
    return config if lock == config.lock else replace(config, lock=lock)


def _lock_ref(root: Path) -> LockRef:
    """Return the digest of the lock, which an unchanged render needs of it."""
    content = read_lock(root)
    return LockRef() if content is None else LockRef(sha256(content).hexdigest())


def _load(root: Path, environment: str) -> Config:
    path = root / FILE_NAME
    if not os.path.lexists(path):
        if environment:
            raise InputError([missing.missing_config(root)])
        base = Config(root=root)
        if not (root / base.catalog_folder).is_dir():
            return base
        problems = Diagnostics()
        catalog = catalog_rows.read_catalog(root, base.catalog_folder, problems)
        problems.raise_errors()
        return replace(base, catalog=catalog)
    cache = _SettingsCache(path, environment)
    config = cache.read(root)
    if config is None or not _is_catalog_unchanged(config):
        # Only a changed file is validated: an unchanged render does not import the model of the file.
        config = merge.read_config(root, environment)
        if not dialects.names_of_packages(config.dialects):
            # A package checks its settings, and can be upgraded at any time.
            cache.write(config)
    return config


def _is_catalog_unchanged(config: Config) -> bool:
    """Return whether the rows of settings are those of the files."""
    if not (config.root / config.catalog_folder).is_dir():
        return not config.catalog.digest
    sources, unread = catalog_rows.catalog_sources(config.root, config.catalog_folder)
    return not unread.has_errors and catalog_rows.catalog_digest(sources) == config.catalog.digest


def _size(path: Path) -> int:
    """Return the size of a file in bytes; 0 without one."""
    return path.stat().st_size if path.is_file() else 0


class _Stored(msgspec.Struct, frozen=True):
    """The content of a file of the cache."""

    settings: msgspec.Raw


def _restored(content: bytes) -> Config:
    """Return stored settings. Only the types of those that are stored are read, because a type imports its block."""
    settings = msgspec.json.decode(content, type=_Stored).settings
    names = msgspec.json.decode(settings, type=dict[str, msgspec.Raw])
    types = [(name, Config.__annotations__[name]) for name in names]
    model = msgspec.defstruct("Settings", types, module=Config.__module__)
    return Config(**asdict(msgspec.json.decode(settings, type=model, dec_hook=_restored_value)))


def _restored_value(kind: Any, value: Any) -> object:
    return Path(value) if kind is Path else kind.from_document(value)


class _SettingsCache:
    """The settings of one environment, stored under the content of the files that they come from."""

    def __init__(self, path: Path, environment: str) -> None:
        folder = cache_folder()
        self._path: Path | None = None
        pins = pins_path(path.parent, environment)
        if folder is not None and path.is_file() and _size(path) + _size(pins) < _MAX_CACHED_BYTES:
            try:
                pinned = pins.read_bytes() if environment and pins.is_file() else b""
                parts = (build_id().encode(), environment.encode(), path.read_bytes(), pinned)
            except OSError:
                return  # The reader reports it.
            name = sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()
            self._path = folder / "config" / f"{name[:32]}.json"

    def read(self, root: Path) -> Config | None:
        """Return the stored settings; None when there are none, or they are damaged."""
        try:
            content = self._path.read_bytes() if self._path else b""
            return replace(_restored(content), root=root)
        except (OSError, msgspec.DecodeError, KeyError):
            return None

    def write(self, config: Config) -> None:
        """Store settings."""
        if self._path is None:
            return
        replace_file(self._path, msgspec.json.encode({"settings": config}, enc_hook=str))


def read_lock(root: Path) -> bytes | None:
    """Return the content of a repository's lock; None without one.

    Raises:
        InputError: it cannot be read, is too large, or is a link that leads out of the repository.
    """
    return read_file(root / LOCK_NAME, root, GENERATED_FILE_BYTES, RESTORE)
