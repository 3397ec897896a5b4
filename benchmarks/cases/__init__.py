"""The cases of the benchmark, each a function that returns tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from benchmarks.bench import Bench
from benchmarks.cases.change import change
from benchmarks.cases.diff import diff
from benchmarks.cases.many import many
from benchmarks.cases.memory import memory
from benchmarks.cases.one import one
from benchmarks.cases.startup import startup
from benchmarks.results import Table

CASES: Mapping[str, Callable[[Bench], Iterator[Table]]] = {
    "startup": startup,
    "one": one,
    "many": many,
    "change": change,
    "diff": diff,
    "memory": memory,
}
"""Every case by its name in `--only`."""
