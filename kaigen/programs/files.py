"""The files of this package as pods find them: their paths in a container, and their texts.

A container that names a path of a program gets the mount (`kaigen.compile.programs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

FOLDER = "/etc/kaigen-programs"
"""Folder of the programs in a container."""


def program(name: str) -> str:
    """Return the path of a program in a container."""
    return f"{FOLDER}/{name}"


def programs_in(text: str) -> Iterator[str]:
    """Yield the name of the program whose path a text is, if it is one."""
    folder, _, name = text.rpartition("/")
    if folder == FOLDER and name in _names():
        yield name


@cache
def program_text(name: str) -> str:
    """Return the text of a program."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def _names() -> frozenset[str]:
    found = (path.name for path in Path(__file__).parent.iterdir() if path.suffix in {".py", ".sh"})
    return frozenset(found) - {"__init__.py", Path(__file__).name}
