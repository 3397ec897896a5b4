"""Run a command once and measure its time and memory."""

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
_MAX_ERROR = 2000


class CommandFailed(Exception):
    """A command ended with an unexpected exit code. The message is the command and its error output."""

    def reason(self) -> str:
        """Return the most informative line of the error output."""
        lines = [line.strip() for line in str(self).splitlines() if line.strip()]
        return next((line for line in lines[1:] if "error" in line.lower()), lines[-1])


@dataclass(frozen=True, slots=True)
class Command:
    """A command to measure.

    Attributes:
        argv: the program's absolute path and its arguments.
        cwd: the working directory.
        env: the complete environment.
        output: the file or folder of the result.
        prints: whether the result is its standard output.
        status: the exit code of a successful run.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    output: Path
    prints: bool = False
    status: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Time and memory of one run.

    Attributes:
        wall_s: elapsed seconds.
        cpu_s: seconds of processor time, including child processes.
        peak_kib: peak memory of the command or of its largest child.
    """

    wall_s: float
    cpu_s: float
    peak_kib: int


def program(name: str) -> str:
    """Return the absolute path of a program on the PATH.

    Raises:
        CommandFailed: the program is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise CommandFailed(f"no {name} on the PATH")
    return found


def run(command: Command) -> Sample:
    """Run a command once.

    Raises:
        CommandFailed: the exit code is not `command.status`.
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
        raise CommandFailed(f"{command.argv[0]}\n{done.stderr.strip()[-_MAX_ERROR:]}")
    result = json.loads(done.stdout)
    if result["status"] != command.status:
        line = " ".join(command.argv)
        raise CommandFailed(f"{line}: exit code {result['status']}\n{done.stderr.strip()[-_MAX_ERROR:]}")
    return Sample(result["wall_s"], result["cpu_s"], result["peak_kib"])


def discard(path: Path) -> None:
    """Remove a file or folder if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def call(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
    """Run a command without measuring it.

    Raises:
        CommandFailed: its exit code is not zero.
    """
    try:
        done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CommandFailed(f"{argv[0]}: {error.strerror or error}") from error
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(argv)}\n{(done.stderr or done.stdout).strip()[-_MAX_ERROR:]}")
