"""The tools and folders that every case of the benchmark uses."""

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
    """The installed tools, a scratch folder and the options of the run.

    Attributes:
        kaigen: the command that is measured.
        peers: the installed peers by name.
        runs: rounds of each case.
        specs: sizes of the repositories.
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
                _report_missing(name, error.reason())
            except ToolError as error:
                _report_missing(name, str(error))

    def folder(self, name: str) -> Path:
        """Return a path below the scratch folder that does not exist yet."""
        path = self._scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def repository(self, name: str, specs: int) -> Path:
        """Create a repository with this many specs and return its folder."""
        return write_repository(self.folder(name), specs)

    def rendered(self, repository: Path) -> list[Object]:
        """Return the objects kaigen renders from a repository."""
        self.kaigen.render(repository)
        return read_objects(repository / "rendered")

    def peer(self, name: str, folder: str, objects: Sequence[Object], what: str = "") -> list[Contender]:
        """Return the peer as a contender that writes these objects; nothing if it is not installed."""
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
        """Return every installed tool once; the objects are too few for the number of files to matter."""
        names = [name for name in self.peers if not name.endswith("-files")]
        return [contender for name in names for contender in self.peer(name, folder, objects, what)]

    def compare(self, title: str, contenders: Sequence[Contender], ruler: str, runs: int = 0) -> Table:
        """Measure contenders in the same rounds."""
        return tabulate(title, measure(contenders, runs or self.runs, title), ruler)


def _report_missing(name: str, why: str) -> None:
    print(f"{name} cannot be installed, so its rows are missing: {why}", file=sys.stderr)
