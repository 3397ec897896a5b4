"""What one run is for: the settings of `kaigen.yaml` with those of an environment over them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

FILE_NAME = "kaigen.yaml"
PINS_FOLDER = "pins"
Format = Literal["manifests", "chart", "both"]


@dataclass(frozen=True, slots=True)
class Override:
    """A change of some specs that kaigen.yaml asks for. All that it matches by must fit.

    Attributes:
        apps: names or globs, `NAME` or `NAMESPACE/NAME`; any when empty.
        kinds: as `kaigen kinds` lists them; any when empty.
        labels: that the spec must have.
        patch: a JSON merge patch of the whole document.
        at: the entry's path in kaigen.yaml.
    """

    apps: tuple[str, ...]
    kinds: tuple[str, ...]
    labels: Mapping[str, str]
    patch: Mapping[str, Any]
    at: tuple[str | int, ...]

    @property
    def environment(self) -> str:
        """Whose it is; empty for one that all environments share."""
        return str(self.at[1]) if self.at[0] == "environments" else ""


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
        plain_images: the same as they are without a mirror.
        named_images: names of those that the environment itself names in kaigen.yaml.
        pinned_images: those of them that were promoted to the environment.
        values: settings overridden by app, the environment's after the file's.
        overrides: fields of specs overridden, the environment's after the file's.
        pins: what was promoted to the environment: by app (`NAME`, or `NAMESPACE/NAME` where the spec names its
            namespace) the value of each field, under its dotted name.
        promotion: names of environments in the order in which changes reach them; empty when it is free.
        origin: digest of the files that overrides and pins stand in, whose lines messages name; empty without.
        specs: files and folders.
        output: folder that is rendered into, the environment's name included.
        format: what is written.
        passthrough: let plain Kubernetes objects through.
        secrets: how ExternalSecrets are written, as `kaigen.config.secrets` gives it; empty for none.
        kinds: folders that define kinds of the user's own.
        patches: changes of objects, as `kaigen.config.patches` gives them; the environment's after the file's.
        environments: names of all that kaigen.yaml has.
        gitops: what Argo CD and Flux are told, as `kaigen.config.gitops.settled` gives it.
        publish: where it is published, as `kaigen.config.publish.publish_settings` gives it.
    """

    root: Path = Path()
    environment: str = ""
    kubernetes: str = "1.36"
    profile: str = "generic"
    namespace: str = "default"
    images: Mapping[str, str] = field(default_factory=dict)
    plain_images: Mapping[str, str] = field(default_factory=dict)
    named_images: tuple[str, ...] = ()
    pinned_images: Mapping[str, str] = field(default_factory=dict)
    values: tuple[Mapping[str, Mapping[str, Any]], ...] = ()
    overrides: tuple[Override, ...] = ()
    pins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    promotion: tuple[str, ...] = ()
    origin: str = ""
    specs: tuple[str, ...] = ("specs",)
    output: str = "rendered"
    format: Format = "manifests"
    passthrough: bool = False
    secrets: Mapping[str, Any] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    patches: tuple[Mapping[str, Any], ...] = ()
    gitops: Mapping[str, Any] | None = None
    environments: tuple[str, ...] = ()
    publish: Mapping[str, Any] = field(default_factory=dict)


def no_specs(config: Config) -> list[Path]:
    """Files and folders among the specs that hold none: the output, kinds, and patches."""
    files = [patch["patch"] for patch in config.patches if isinstance(patch["patch"], str)]
    # The trees of all environments stand side by side.
    trees = config.output.removesuffix(f"/{config.environment}") if config.environment else config.output
    return [config.root / path for path in (trees, *config.kinds, *files)]


def default_images() -> dict[str, str]:
    """kaigen's own images, of this version."""
    from kaigen import __version__
    from kaigen.catalog.data import load

    return {name: ref.replace("{version}", __version__) for name, ref in load("images").items()}


def pins_path(root: Path, environment: str) -> Path:
    """The file that holds what was promoted to an environment."""
    return root / PINS_FOLDER / f"{environment}.yaml"


def find_root(start: Path) -> Path:
    """The nearest folder, from `start` upwards, that holds `kaigen.yaml`; `start` itself when none does."""
    for folder in (start, *start.parents):
        # A folder or a broken link of that name is told as wrong, and not passed over for the defaults.
        if os.path.lexists(folder / FILE_NAME):
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
    if not os.path.lexists(path) and not environment:
        return Config(root=root, images=default_images())
    known = _Known(path, environment)
    config = known.read(root)
    if config is None:
        from kaigen.config.file import read_config_file

        config = read_config_file(root, environment)
        known.write(config)
    return config


def _override(raw: Mapping[str, Any]) -> Override:
    lists = {name: tuple(raw[name]) for name in ("apps", "kinds", "at")}
    return Override(**lists, labels=raw["labels"], patch=raw["patch"])


class _Known:
    """The settings that a file came to when it was last read, so that it need not be validated again."""

    def __init__(self, path: Path, environment: str) -> None:
        from hashlib import sha256

        from kaigen.system.cache import build_id, cache_folder

        folder = cache_folder()
        self._path: Path | None = None
        if folder is not None and path.is_file() and path.stat().st_size < 1 << 20:
            pins = pins_path(path.parent, environment)
            pinned = pins.read_bytes() if environment and pins.is_file() else b""
            parts = (build_id().encode(), environment.encode(), path.read_bytes(), pinned)
            name = sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()
            self._path = folder / "config" / f"{name[:32]}.json"

    def read(self, root: Path) -> Config | None:
        import json

        try:
            data = json.loads(self._path.read_bytes()) if self._path else None
            if not isinstance(data, dict):
                return None
            for name in ("specs", "values", "environments", "promotion", "named_images", "kinds", "patches"):
                data[name] = tuple(data[name])
            data["overrides"] = tuple(_override(raw) for raw in data["overrides"])
            return Config(**{**data, "root": root})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, config: Config) -> None:
        import json
        from dataclasses import asdict

        from kaigen.system.cache import replace_file

        if self._path is not None:
            replace_file(self._path, json.dumps({**asdict(config), "root": ""}).encode())
