"""The `kaigen` command, installed into an environment of its own as a user would install it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.command import Command, CommandFailed, call, discard
from benchmarks.environments import ROOT, clean_environment, python_environment
from benchmarks.rounds import Contender


class Kaigen:
    """The `kaigen` command."""

    def __init__(self) -> None:
        locks = [ROOT / "requirements" / f"{name}.txt" for name in ("base", "build")]
        self.env = clean_environment()
        try:
            programs = python_environment("kaigen", locks, ROOT)
        except CommandFailed as error:
            print(f"kaigen is measured in this environment, because its own failed: {error.reason()}", file=sys.stderr)
            self.python = sys.executable
            self._start: tuple[str, ...] = (sys.executable, "-m", "kaigen")
            self.env["PYTHONPATH"] = str(ROOT)
        else:
            self.python = str(programs / "python")
            self._start = (str(programs / "kaigen"),)

    def command(self, repository: Path, *arguments: str, prints: bool = False, cache: bool = True) -> Command:
        """Return a kaigen command for a repository, with a cache next to the repository.

        Args:
            repository: the working directory.
            arguments: kaigen's arguments.
            prints: whether the result is its standard output and not the output tree.
            cache: whether to use a cache.
        """
        folder = repository.with_name(f"{repository.name}.cache")
        return Command(
            argv=(*self._start, *arguments),
            cwd=repository,
            env={**self.env, "KAIGEN_CACHE_DIR": str(folder) if cache else "off"},
            output=repository.with_name(f"{repository.name}.out") if prints else repository / "rendered",
            prints=prints,
        )

    def cold(self, name: str, repository: Path, *arguments: str, prints: bool = False) -> Contender:
        """Return a contender that starts without a cache and without an output tree."""
        command = self.command(repository, *arguments, prints=prints)

        def forget() -> None:
            discard(Path(command.env["KAIGEN_CACHE_DIR"]))
            discard(repository / "rendered")

        return Contender(name, command, before=forget)

    def render(self, repository: Path, *arguments: str) -> None:
        """Render a repository with its cache, without measuring."""
        command = self.command(repository, "--quiet", "render", *arguments)
        call(command.argv, repository, {**os.environ, **command.env})
