"""Walks through folders that may be nested in any way."""

from __future__ import annotations

import os
from collections.abc import Iterator

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.errors import InputError
from kaigen.system.limits import FOLDER_DEPTH


def too_deep(folder: str) -> Diagnostic:
    """Return the error for a folder below `FOLDER_DEPTH` levels of folders."""
    shown = os.fsencode(os.path.normpath(folder)).decode(errors="replace").replace(os.sep, "/")
    message = f"folders are nested more than {FOLDER_DEPTH} levels deep"
    return Diagnostic("KG0105", message, Mark(shown), "remove this folder, or move its files up")


def walk(top: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield a folder and those below it, each with the names of its folders and of its other entries.

    As with `os.walk`, links to folders are not followed, and the caller may sort the names of folders or remove some,
    which are then not entered. Folders that cannot be listed are left out.

    Raises:
        InputError: KG0105, folders are nested too deep.
    """
    waiting = [(os.fspath(top), 0)]
    while waiting:
        folder, depth = waiting.pop()
        if depth > FOLDER_DEPTH:
            raise InputError([too_deep(folder)])
        folders: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else others).append(entry.name)
        except OSError:
            continue
        yield folder, folders, others
        inner = (os.path.join(folder, name) for name in reversed(folders))
        waiting += [(path, depth + 1) for path in inner if not os.path.islink(path)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # A link that leads to itself.
