"""The peak memory of a render and its growth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from benchmarks.bench import Bench
from benchmarks.results import Row, Table

_RUNS = 2


def memory(bench: Bench) -> Iterator[Table]:
    """Render growing numbers of specs from nothing, up to four times the largest repository."""
    sizes = [*bench.specs, 4 * bench.specs[-1]]
    for what, form in (("manifests", "manifests"), ("both forms", "both")):
        names = [f"kaigen, {what}, {specs} specs" for specs in sizes]
        contenders = [
            bench.kaigen.cold(name, bench.repository(f"memory/{form}-{specs}", specs), "render", "--format", form)
            for name, specs in zip(names, sizes, strict=True)
        ]
        table = bench.compare(f"Memory, {what}", contenders, names[0], _RUNS)
        table.notes += _growth(sizes, table.rows)
        yield table


def _growth(sizes: Sequence[int], rows: Sequence[Row]) -> Iterator[str]:
    for (less, small), (more, large) in pairwise(zip(sizes, rows, strict=True)):
        each = (large.peak_kib - small.peak_kib) / (more - less)
        yield f"from {less} to {more} specs: {each:.1f} KiB per additional spec"
