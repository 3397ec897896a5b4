"""One spec, as an editor or a small pull request renders it."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.cases.startup import RULER
from benchmarks.results import Table
from benchmarks.rounds import Contender
from benchmarks.workload import DEPLOYMENT, write_lone_job

_BOTH = ("render", "--format", "both")


def one(bench: Bench) -> Iterator[Table]:
    """Compare one spec as manifests and as a chart with each peer on the same objects."""
    kaigen = bench.kaigen
    model = bench.repository("one/model", 1)
    job = write_lone_job(bench.folder("one/job"))
    warm = bench.repository("one/warm", 1)
    kaigen.render(warm, "--format", "both")
    objects = bench.rendered(model)
    contenders = [
        *bench.peer("helm", "one/ruler", [DEPLOYMENT], ", one Deployment"),
        kaigen.cold("kaigen, a Model, both forms", model, *_BOTH),
        kaigen.cold("kaigen, a Job, both forms", job, *_BOTH),
        kaigen.cold("kaigen, a Model, manifests", bench.repository("one/manifests", 1), "render"),
        Contender("kaigen, a Model, both forms, unchanged", kaigen.command(warm, *_BOTH)),
        *bench.every_tool("one", objects, ", the Model's objects"),
    ]
    table = bench.compare("One spec", contenders, RULER)
    for kind in ("Model", "Job"):
        what = f"a {kind} in both forms, compared with helm template of one Deployment"
        table.expect(f"kaigen, a {kind}, both forms", what, 3)
    yield table
