"""Runs kaigen-train, in this process or in one of its own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaigen_train import cli

RUNTIME = Path(cli.__file__).parent.parent


@dataclass(frozen=True)
class Program:
    """The program with its input.

    Attributes:
        model: the model.
        data: the dataset.
        folder: for settings and results.
        flags: further arguments.
    """

    model: Path
    data: Path
    folder: Path
    flags: tuple[str, ...] = ()

    @property
    def output(self) -> Path:
        """The folder of the results."""
        return self.folder / "output"

    def arguments(self, **settings: Any) -> list[str]:
        """Return the arguments for a run with these settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        params = self.folder / "params.json"
        given = {"batchSize": 2, "gradientAccumulation": 1, "learningRate": 1e-2, **settings}
        params.write_text(json.dumps(given), "utf-8")
        where = {"model": self.model, "dataset": self.data, "output": self.output, "params": params}
        return [*(f"--{name}={path}" for name, path in where.items()), *self.flags]

    def run(self, **settings: Any) -> int:
        """Run in this process and return the exit code."""
        return cli.main(self.arguments(**settings), {})

    def start(self, env: Mapping[str, str] | None = None, **settings: Any) -> subprocess.Popen[str]:
        """Start a process on one CPU: threads of several processes would wait for each other."""
        return subprocess.Popen(
            [sys.executable, "-m", "kaigen_train", *self.arguments(**settings)],
            cwd=RUNTIME,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def report(self) -> dict[str, Any]:
        """Return the report."""
        return dict(json.loads((self.output / "report.json").read_text("utf-8")))

    def files(self, folder: str) -> dict[str, str]:
        """Return the checksums of the files of a result."""
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (self.output / folder).iterdir()}


def lines(text: str) -> list[dict[str, Any]]:
    """Return the metrics."""
    return [json.loads(line) for line in text.splitlines()]
