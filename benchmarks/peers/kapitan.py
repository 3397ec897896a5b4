"""Kapitan: one target, whose objects come from a component in Python."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import Command
from benchmarks.environments import clean_environment, python_environment
from benchmarks.objects import names
from benchmarks.workload import Object

_HERE = Path(__file__).parent
_TARGET = """\
parameters:
  kapitan:
    vars:
      target: bench
    compile:
      - input_type: kadet
        output_type: yaml
        output_path: .
        input_paths: [components/objects]
"""


class Kapitan:
    """`kapitan compile`, with a kadet component."""

    title = "kapitan compile"

    def __init__(self) -> None:
        self._program = python_environment("kapitan", [_HERE / "kapitan.txt"]) / "kapitan"

    def prepare(self, folder: Path, objects: Sequence[Object]) -> Command:
        """Write an inventory and a component."""
        targets = folder / "inventory" / "targets"
        targets.mkdir(parents=True)
        (targets / "bench.yml").write_text(_TARGET)
        (folder / "inventory" / "classes").mkdir()
        component = folder / "components" / "objects"
        component.mkdir(parents=True)
        shutil.copy(_HERE / "programs" / "component.py", component / "__init__.py")
        data = dict(zip(names(objects), objects, strict=True))
        (component / "objects.json").write_text(json.dumps(data))
        return Command(
            argv=(str(self._program), "compile", "--quiet"),
            cwd=folder,
            env=clean_environment(),
            output=folder / "compiled",
        )
