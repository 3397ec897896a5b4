"""The files of this package as pods find them: their paths in a container, and their texts.

A container that names a path of a program gets the mount (`kaigen.compile.finish`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

VOLUME = "kaigen-programs"
FOLDER = "/etc/kaigen-programs"
"""Folder of the programs in a container."""


def program(name: str) -> str:
    """Return the path of a program in a container."""
    return f"{FOLDER}/{name}"


def programs_in(tree: Any) -> Iterator[str]:
    """Yield the names of the programs whose paths occur in a tree of plain data."""
    if isinstance(tree, str):
        folder, _, name = tree.rpartition("/")
        if folder == FOLDER and name in _names():
            yield name
    elif isinstance(tree, Mapping):
        for node in tree.values():
            yield from programs_in(node)
    elif isinstance(tree, list | tuple):
        for node in tree:
            yield from programs_in(node)


@cache
def program_text(name: str) -> str:
    """Return the text of a program."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def _names() -> frozenset[str]:
    found = (path.name for path in Path(__file__).parent.iterdir() if path.suffix in {".py", ".sh"})
    return frozenset(found) - {"__init__.py", Path(__file__).name}
