"""cdk8s: a program that creates an ApiObject for each object, in JavaScript and in Python."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import Command, program
from benchmarks.environments import clean_environment, node_environment, python_environment
from benchmarks.objects import names
from benchmarks.workload import Object

_HERE = Path(__file__).parent


class Cdk8sNode:
    """cdk8s for Node, its native language.

    Args:
        layout: a `YamlOutputType` of cdk8s.
        title: the name of its row.
    """

    def __init__(self, layout: str = "FILE_PER_APP", title: str = "cdk8s (Node)") -> None:
        self.title = title
        self._layout = layout
        self._program = program("node")
        self._modules = node_environment("cdk8s-node", _HERE / "package.json", _HERE / "package-lock.json")

    def prepare(self, folder: Path, objects: Sequence[Object]) -> Command:
        """Write a program and its data."""
        _write(folder, "synth.js", objects)
        return Command(
            argv=(self._program, "synth.js", self._layout),
            cwd=folder,
            env={**clean_environment(), "NODE_PATH": str(self._modules / "node_modules")},
            output=folder / "dist",
        )


class Cdk8sPython:
    """cdk8s for Python, which starts a Node process."""

    title = "cdk8s (Python)"

    def __init__(self) -> None:
        program("node")
        self._program = python_environment("cdk8s-python", [_HERE / "cdk8s.txt"]) / "python"

    def prepare(self, folder: Path, objects: Sequence[Object]) -> Command:
        """Write a program and its data."""
        _write(folder, "synth.py", objects)
        return Command(
            argv=(str(self._program), "synth.py"), cwd=folder, env=clean_environment(), output=folder / "dist"
        )


def _write(folder: Path, name: str, objects: Sequence[Object]) -> None:
    folder.mkdir(parents=True)
    shutil.copy(_HERE / "programs" / name, folder / name)
    data = dict(zip(names(objects), objects, strict=True))
    (folder / "objects.json").write_text(json.dumps(data))
