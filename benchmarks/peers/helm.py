"""Helm: a chart of static templates, one file per object."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import Command
from benchmarks.environments import clean_environment
from benchmarks.objects import write_objects
from benchmarks.workload import Object
from tests import tools

_CHART = """\
apiVersion: v2
name: bench
version: 0.1.0
"""


class Helm:
    """`helm template`."""

    title = "helm template"

    def __init__(self) -> None:
        self._program = tools.helm()

    def prepare(self, folder: Path, objects: Sequence[Object]) -> Command:
        """Write a chart."""
        write_objects(folder / "chart" / "templates", objects)
        (folder / "chart" / "Chart.yaml").write_text(_CHART)
        return Command(
            argv=(str(self._program), "template", "bench", "chart", "--namespace", "ml"),
            cwd=folder,
            env=clean_environment(),
            output=folder / "out.yaml",
            prints=True,
        )
