"""A command, and what running it once took."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LAUNCHER = str(Path(__file__).with_name("launch.py"))
_TOLD = 2000


class CommandFailed(Exception):
    """A command ended with another exit code than was expected.

    The text is the command, and below it what it said.
    """

    def reason(self) -> str:
        """The line that says the most."""
        lines = [line.strip() for line in str(self).splitlines() if line.strip()]
        return next((line for line in lines[1:] if "error" in line.lower()), lines[-1])


@dataclass(frozen=True, slots=True)
class Command:
    """What is run.

    Attributes:
        argv: the program, by its whole path, and its arguments.
        cwd: the folder it runs in.
        env: its environment, all of it.
        output: the file or folder that its result goes to.
        prints: whether the result is what it prints.
        status: the exit code that means it did its work.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    output: Path
    prints: bool = False
    status: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run took.

    Attributes:
        wall_s: seconds from its start to its end.
        cpu_s: seconds of processor time, its children's included.
        peak_kib: the most memory that it, or the largest of its children, held at once.
    """

    wall_s: float
    cpu_s: float
    peak_kib: int


def program(name: str) -> str:
    """The whole path of a program on the PATH.

    Raises:
        CommandFailed: there is none.
    """
    found = shutil.which(name)
    if found is None:
        raise CommandFailed(f"no {name} on the PATH")
    return found


def run(command: Command) -> Sample:
    """Run a command once.

    Raises:
        CommandFailed: it ended with another exit code than `command.status`.
    """
    task = {
        "argv": command.argv,
        "cwd": str(command.cwd),
        "env": dict(command.env),
        "stdout": str(command.output) if command.prints else os.devnull,
    }
    done = subprocess.run(
        [sys.executable, "-I", "-S", _LAUNCHER, json.dumps(task)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CommandFailed(f"{command.argv[0]}\n{done.stderr.strip()[-_TOLD:]}")
    told = json.loads(done.stdout)
    if told["status"] != command.status:
        shown = " ".join(command.argv)
        raise CommandFailed(f"{shown}: exit code {told['status']}\n{done.stderr.strip()[-_TOLD:]}")
    return Sample(told["wall_s"], told["cpu_s"], told["peak_kib"])


def discard(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def call(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
    """Run a command that is not measured.

    Raises:
        CommandFailed: its exit code is not zero.
    """
    try:
        done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CommandFailed(f"{argv[0]}: {error.strerror or error}") from error
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(argv)}\n{(done.stderr or done.stdout).strip()[-_TOLD:]}")
