"""The interface of a peer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from benchmarks.command import Command
from benchmarks.workload import Object


class Peer(Protocol):
    """A tool that can write the objects it is given."""

    @property
    def title(self) -> str:
        """The name of its row."""

    def prepare(self, folder: Path, objects: Sequence[Object]) -> Command:
        """Write the objects into a new folder as input of this tool.

        Returns:
            The command that writes them as YAML.
        """
