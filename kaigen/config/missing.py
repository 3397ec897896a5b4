"""The problem of a folder without `kaigen.yaml`, with the nearest repository as a hint."""

from __future__ import annotations

from pathlib import Path

from kaigen.config.settings import FILE_NAME
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.yaml.sources import SKIPPED_FOLDERS

_DEEPEST = 3
_MOST_FOLDERS = 200
"""Folders of one level that are searched for a repository."""


def missing_config(root: Path) -> Diagnostic:
    """Return the problem of a folder that is not in a repository.

    Args:
        root: the folder; no folder above it contains kaigen.yaml.
    """
    nearby = _repository_below(root)
    hint = f"change to the folder `{nearby}`" if nearby else "run `kaigen init` to start a repository here"
    return Diagnostic("KG0718", f"there is no {FILE_NAME} in this folder or in a folder above it", hint=hint)


def _repository_below(root: Path) -> str:
    """Return the first folder with kaigen.yaml a few levels below a folder; empty without one."""
    level = [root]
    for _ in range(_DEEPEST):
        level = [folder for parent in level for folder in _folders(parent)][:_MOST_FOLDERS]
        for folder in level:
            if (folder / FILE_NAME).is_file():
                return folder.relative_to(root).as_posix()
    return ""


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(
            path
            for path in parent.iterdir()
            if path.is_dir() and not (path.is_symlink() or path.name.startswith(".") or path.name in SKIPPED_FOLDERS)
        )
    except OSError:
        return []
