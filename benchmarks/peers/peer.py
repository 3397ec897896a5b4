"""What the benchmark asks of a peer."""

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
        """What its row is called."""

    def prepare(self, folder: Path, objects: Sequence[Object]) -> Command:
        """Put the objects into a new folder, as input to this tool.

        Returns:
            The command that makes YAML of them.
        """
