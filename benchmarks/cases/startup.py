"""The time until a command does anything."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.command import Command
from benchmarks.results import Table
from benchmarks.rounds import Contender
from benchmarks.workload import DEPLOYMENT

RULER = "helm template, one Deployment"


def startup(bench: Bench) -> Iterator[Table]:
    """Compare `--help` with each peer on one Deployment."""
    kaigen = bench.kaigen
    repository = bench.repository("startup/repository", 2)
    python = Command((kaigen.python, "-I", "-c", "pass"), repository, kaigen.env, repository / "none")
    contenders = [
        *bench.every_tool("startup", [DEPLOYMENT], ", one Deployment"),
        Contender("kaigen --help", kaigen.command(repository, "--help", prints=True)),
        Contender("kaigen render --help", kaigen.command(repository, "render", "--help", prints=True)),
        Contender("kaigen validate, two specs", kaigen.command(repository, "validate", prints=True)),
        Contender("python, doing nothing", python),
    ]
    table = bench.compare("Start-up", contenders, RULER)
    table.expect("kaigen --help", "--help, compared with helm template of one Deployment", 1.3)
    yield table
