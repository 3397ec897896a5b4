"""The output tree of an earlier commit."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from kaigen.config.load import load_config
from kaigen.config.settings import FILE_NAME, PINS_FOLDER, Config
from kaigen.git.repository import is_below, read_file_at, read_submodules_at, read_tree_at
from kaigen.output.index import INDEX_NAME
from kaigen.pipeline.run import render


def configs_at(config: Config, commit: str) -> dict[str, Config]:
    """Return the settings at a commit by environment; under an empty name for a repository without environments.

    Args:
        config: the current settings of any environment.
        commit: the commit.

    Raises:
        InputError: kaigen.yaml of the commit is invalid.
    """
    text = read_file_at(config.root, commit, FILE_NAME)
    with tempfile.TemporaryDirectory() as folder:
        if text is not None:
            Path(folder, FILE_NAME).write_bytes(text)
        first = load_config(Path(folder))
        return {name: load_config(Path(folder), name) for name in first.environments or ("",)}


def tree_at(config: Config, commit: str, output: str) -> dict[str, bytes]:
    """Return the output tree of a commit: the committed tree, or the commit's specs rendered if there is none.

    Args:
        config: the current settings of the environment, which the commit has.
        commit: the commit.
        output: folder that the environment was rendered into.

    Raises:
        InputError: the specs of the commit are invalid.
    """
    tree = read_tree_at(config.root, commit, output)
    return tree if INDEX_NAME in tree else _render_at(config, commit)


def is_rendered_at(config: Config, commit: str, output: str) -> bool:
    """Return whether a folder is an output tree at a commit."""
    return read_file_at(config.root, commit, f"{output}/{INDEX_NAME}") is not None


def _render_at(config: Config, commit: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        files = read_tree_at(config.root, commit)
        _write(folder, files)
        _write(folder, read_submodules_at(config.root, commit, (config.catalog_folder, PINS_FOLDER)))
        before = load_config(Path(folder), config.environment)
        inner = read_submodules_at(
            config.root, commit, (*before.specs, *before.kinds, *before.patch_files, before.catalog_folder)
        )
        if not any(is_below(path, before.specs) for path in (*files, *inner)):
            return {}
        _write(folder, inner)
        return render((), before)


def _write(folder: str, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        target = Path(folder, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
