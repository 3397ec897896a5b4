"""Rendering again, as on a save in an editor, in a commit hook and in CI."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from benchmarks.bench import Bench
from benchmarks.results import Table
from benchmarks.rounds import Contender
from benchmarks.workload import edit_specs

_FULL = "kaigen render, from nothing"
_CHANGED = "kaigen render, one spec changed"


def change(bench: Bench) -> Iterator[Table]:
    """Compare a render after one change of many specs with a full render."""
    specs = bench.specs[-1]
    kaigen = bench.kaigen
    changed, whole, still = (bench.repository(f"change/{name}", specs) for name in ("changed", "whole", "still"))
    for repository in (changed, whole, still):
        kaigen.render(repository)
    editions = count(1)

    def edit() -> None:
        for repository in (changed, whole):
            edit_specs(repository, f"edition-{next(editions)}", 1)

    contenders = [
        kaigen.cold(_FULL, bench.repository("change/full", specs), "render"),
        Contender(_CHANGED, kaigen.command(changed, "render"), before=edit),
        Contender("kaigen render --no-cache, one spec changed", kaigen.command(whole, "render", "--no-cache")),
        Contender("kaigen render, nothing changed", kaigen.command(still, "render")),
        Contender("kaigen render --check, nothing changed", kaigen.command(still, "render", "--check")),
        Contender("kaigen render --check, no cache", kaigen.command(still, "render", "--check", cache=False)),
    ]
    table = bench.compare(f"{specs} specs, rendered again", contenders, _FULL)
    table.expect(_CHANGED, f"one change of {specs} specs, compared with a full render", 0.2)
    yield table
