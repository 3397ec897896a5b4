"""`kaigen diff`, as a pull request runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.command import CommandFailed, call, program
from benchmarks.results import Table
from benchmarks.rounds import Contender
from benchmarks.workload import edit_specs

_SPECS = 100
_ONE = "kaigen diff, one spec changed"


def diff(bench: Bench) -> Iterator[Table]:
    """Measure the diff of a hundred committed apps after a change of one spec and of every Job."""
    try:
        git = program("git")
    except CommandFailed as error:
        print(f"kaigen diff is not measured: {error}", file=sys.stderr)
        return
    contenders = []
    for name, edited in ((_ONE, 1), ("kaigen diff, every Job changed", _SPECS)):
        repository = bench.repository(f"diff/{edited}", _SPECS)
        bench.kaigen.render(repository)
        _commit(git, repository, bench.kaigen.env)
        edit_specs(repository, "second", edited)
        contenders.append(Contender(name, bench.kaigen.command(repository, "diff", prints=True)))
    table = bench.compare(f"{_SPECS} apps, compared with the last commit", contenders, _ONE)
    for row in table.rows:
        slowest = max(sample.wall_s for sample in row.samples)
        table.notes.append(f"{row.name}: {'under' if slowest < 1 else 'OVER'} a second in every run")
    yield table


def _commit(git: str, repository: Path, env: dict[str, str]) -> None:
    env = {**os.environ, **env}
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.invalid")
    call([git, "init", "--quiet"], repository, env)
    call([git, "add", "--all"], repository, env)
    call([git, *identity, "commit", "--quiet", "--message", "All"], repository, env)
