"""Many specs from nothing, as on the first render or in CI."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.results import Table

_KAIGEN = "kaigen, manifests"
_TARGETS = {"kapitan": 3, "cdk8s-python": 3, "cdk8s-node-files": 1}
"""How many times as long as kaigen these peers should take; cdk8s for Node writes the same number of files."""


def many(bench: Bench) -> Iterator[Table]:
    """Compare a render of all specs with each peer on the same objects."""
    for specs in bench.specs:
        yield _table(bench, specs)


def _table(bench: Bench, specs: int) -> Table:
    kaigen = bench.kaigen
    folder = f"many-{specs}"
    objects = bench.rendered(bench.repository(f"{folder}/objects", specs))
    repository = bench.repository(f"{folder}/repository", specs)
    contenders = [
        kaigen.cold(_KAIGEN, repository, "render"),
        kaigen.cold("kaigen, manifests, as one stream", repository, "render", "--stdout", prints=True),
        kaigen.cold("kaigen, both forms", repository, "render", "--format", "both"),
        *(each for name in bench.peers for each in bench.peer(name, folder, objects)),
    ]
    table = bench.compare(f"{specs} specs, {len(objects)} objects, from nothing", contenders, _KAIGEN)
    if specs >= 1000:
        for name, target in _TARGETS.items():
            if name in bench.peers:
                title = bench.peers[name].title
                table.expect(title, f"{title} compared with kaigen, {specs} specs", target, at_least=True)
    return table
