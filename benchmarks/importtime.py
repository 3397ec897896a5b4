"""What a Python program imported, by whom, and how long each module took: the output of `-X importtime`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"^import time:\s*(\d+) \|\s*\d+ \| ( *)(\S+)$", re.MULTILINE)
_INDENT = 2

COMMAND_LINE = "from kaigen.cli import main; main()"
"""What the `kaigen` program does."""


@dataclass(frozen=True, slots=True)
class Import:
    """One module.

    Attributes:
        name: its whole name.
        own_us: microseconds that its own code took, without what it imports.
        chain: who imported it, outermost first, and itself last.
    """

    name: str
    own_us: int
    chain: tuple[str, ...]


def imports_of(
    python: str, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> tuple[list[Import], subprocess.CompletedProcess[str]]:
    """Run kaigen with these arguments in a process of its own.

    Args:
        python: the interpreter.
        arguments: of kaigen's command line.
        cwd: the folder it runs in.
        env: its environment, all of it.

    Returns:
        The modules, in the order in which they were asked for, and what became of the process.
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
    """The modules that `-X importtime` told of, in the order in which they were asked for."""
    found = []
    chain: list[str] = []
    # A module is told of when it is complete, after those it imported: backwards, the importer comes first.
    for line in reversed(_LINE.findall(text)):
        own, indent, name = line
        del chain[len(indent) // _INDENT :]
        chain.append(name)
        found.append(Import(name, int(own), tuple(chain)))
    return found[::-1]
