"""Read the output of `python -X importtime`: the imported modules, their importers and their times."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"^import time:\s*(\d+) \|\s*\d+ \| ( *)(\S+)$", re.MULTILINE)
_INDENT = 2

COMMAND_LINE = "from kaigen.cli import main; main()"
"""The code of the `kaigen` program."""


@dataclass(frozen=True, slots=True)
class Import:
    """One module.

    Attributes:
        name: the full name.
        own_us: microseconds of its own code, without its imports.
        chain: the modules that imported it, outermost first, and itself last.
    """

    name: str
    own_us: int
    chain: tuple[str, ...]


def imports_of(
    python: str, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> tuple[list[Import], subprocess.CompletedProcess[str]]:
    """Run kaigen in a process of its own and return its imports.

    Args:
        python: the interpreter.
        arguments: kaigen's arguments.
        cwd: the working directory.
        env: the complete environment.

    Returns:
        The modules in import order, and the completed process.
    """
    done = subprocess.run(
        [python, "-X", "importtime", "-c", COMMAND_LINE, *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return read_imports(done.stderr), done


def read_imports(text: str) -> list[Import]:
    """Return the modules that `-X importtime` reported, in import order."""
    found = []
    chain: list[str] = []
    # A module is reported when it is complete, after its imports. Read backwards, the importer is first.
    for line in reversed(_LINE.findall(text)):
        own, indent, name = line
        del chain[len(indent) // _INDENT :]
        chain.append(name)
        found.append(Import(name, int(own), tuple(chain)))
    return found[::-1]
