"""What every case of the benchmark has at hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import CommandFailed
from benchmarks.kaigen import Kaigen
from benchmarks.objects import read_objects, require_same
from benchmarks.peers import PEERS, Peer
from benchmarks.results import Table, tabulate
from benchmarks.rounds import Contender, fresh, measure
from benchmarks.workload import Object, write_repository
from tests.tools import ToolError


class Bench:
    """The tools, a folder to work in, and how much is wanted.

    Attributes:
        kaigen: the command that is measured.
        peers: those that can be had, by name.
        runs: rounds of each case.
        specs: sizes of repositories.
    """

    def __init__(self, scratch: Path, runs: int, specs: Sequence[int], peers: Sequence[str]) -> None:
        self._scratch = scratch
        self.runs = runs
        self.specs = specs
        self.kaigen = Kaigen()
        self.peers: dict[str, Peer] = {}
        for name in peers:
            try:
                self.peers[name] = PEERS[name]()
            except CommandFailed as error:
                _miss(name, error.reason())
            except ToolError as error:
                _miss(name, str(error))

    def folder(self, name: str) -> Path:
        """A path below the scratch folder where nothing is yet."""
        path = self._scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def repository(self, name: str, specs: int) -> Path:
        """A new repository of this many specs."""
        return write_repository(self.folder(name), specs)

    def rendered(self, repository: Path) -> list[Object]:
        """The objects that kaigen makes of a repository."""
        self.kaigen.render(repository)
        return read_objects(repository / "rendered")

    def peer(self, name: str, folder: str, objects: Sequence[Object], what: str = "") -> list[Contender]:
        """A peer with these objects; none when it is not to be had."""
        peer = self.peers.get(name)
        if peer is None:
            return []
        command = peer.prepare(self.folder(f"{folder}/{name}"), objects)
        return [
            Contender(
                peer.title + what,
                command,
                before=fresh(command),
                check=lambda: require_same(read_objects(command.output), objects),
                is_peer=True,
            )
        ]

    def every_tool(self, folder: str, objects: Sequence[Object], what: str = "") -> list[Contender]:
        """Every tool that is to be had, once, with these objects: too few for the number of files to matter."""
        names = [name for name in self.peers if not name.endswith("-files")]
        return [contender for name in names for contender in self.peer(name, folder, objects, what)]

    def compare(self, title: str, contenders: Sequence[Contender], ruler: str, runs: int = 0) -> Table:
        """Measure contenders side by side."""
        return tabulate(title, measure(contenders, runs or self.runs, title), ruler)


def _miss(name: str, why: str) -> None:
    print(f"{name} cannot be had, so its rows are missing: {why}", file=sys.stderr)
