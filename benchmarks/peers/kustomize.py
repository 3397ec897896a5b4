"""The Kustomize inside kubectl: a kustomization that lists one file per object."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import Command
from benchmarks.environments import clean_environment
from benchmarks.objects import write_objects
from benchmarks.workload import Object
from tests import tools


class Kustomize:
    """`kubectl kustomize`."""

    title = "kubectl kustomize"

    def __init__(self) -> None:
        self._program = tools.kubectl()

    def prepare(self, folder: Path, objects: Sequence[Object]) -> Command:
        """Write a kustomization."""
        files = write_objects(folder / "base", objects)
        lines = ["apiVersion: kustomize.config.k8s.io/v1beta1", "kind: Kustomization", "resources:"]
        lines += [f"  - {file.name}" for file in files]
        (folder / "base" / "kustomization.yaml").write_text("\n".join(lines) + "\n")
        return Command(
            argv=(str(self._program), "kustomize", "base"),
            cwd=folder,
            env=clean_environment(),
            output=folder / "out.yaml",
            prints=True,
        )
