"""Plans of Jobs with `workload: generate`: their shards, the size of their input, and the memory of their GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.core.text import plural
from kaigen.sizing.answer import Answer, Question, answer
from kaigen.sizing.constants import GIB
from kaigen.sizing.plan import gib_text, plan
from kaigen.sizing.problem import PlanError
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.compile.job.resolution import JobResolution
    from kaigen.compile.kind_compiler import Resolution
    from kaigen.core.json_types import Json
    from kaigen.kinds.spec import Spec
    from kaigen.plan.tables import Rows
    from kaigen.sizing.facts import Hardware, ModelFacts, Request

with lazy_imports():
    from kaigen.compile.job import generate
    from kaigen.compile.job import resolution as job_resolution
    from kaigen.config import locked_files
    from kaigen.kinds import job as kinds_job
    from kaigen.kinds import model as kinds_model
    from kaigen.sizing import format


_MISFIT = "KG1105"
"""Code of a model that does not fit."""


class BatchInput(Struct, frozen=True):
    """A Dataset that a batch reads.

    Attributes:
        name: of the Dataset.
        files: number of its files; None if kaigen does not know them.
        size: of them together, in bytes; None if unknown.
    """

    name: str
    files: int | None = None
    size: int | None = None


class BatchOfSpec(Struct, frozen=True):
    """How the shards of a batch run.

    Attributes:
        name: of the app.
        source: file of the spec.
        shards: number of pods that share the lines.
        parallel: number of pods at the same time.
        gpus: of each pod.
        gpu: their model; empty if the spec does not say so.
        concurrency: requests of each shard at a time.
        checkpoint: lines whose answers are stored together.
        inputs: the Datasets.
        answer: the memory of each GPU; None if it is unknown.
        why: why the memory is unknown, or why the model does not fit; empty with an answer.
    """

    name: str
    source: str
    shards: int
    parallel: int
    gpus: int
    gpu: str
    concurrency: int
    checkpoint: int
    inputs: tuple[BatchInput, ...]
    answer: Answer | None
    why: str


def plan_batches(specs: Iterable[Spec], resolve: Callable[[Spec], Resolution | None]) -> tuple[BatchOfSpec, ...]:
    """Return the plan of every Job with `workload: generate`.

    Args:
        specs: validated.
        resolve: returns what a render decides about a spec.
    """
    found = []
    for spec in specs:
        if isinstance(spec.block, kinds_job.Job) and spec.block.spec.workload == "generate":
            resolution = resolve(spec)
            assert isinstance(resolution, job_resolution.JobResolution)
            found.append(_plan(spec, resolution))
    return tuple(found)


def _plan(spec: Spec, resolution: JobResolution) -> BatchOfSpec:
    own, namespace = resolution.spec, resolution.metadata.namespace or resolution.context.config.namespace
    settings = generate.generate_settings(own)
    sized = generate.generate_size(own, namespace, resolution.context)
    found, why = None, sized.why
    if sized.model is not None and sized.hardware is not None and sized.request is not None:
        model, catalog = sized.model, resolution.context.catalog
        preset = None if model.described else model.preset
        try:
            found = answer(
                Question(model.name, sized.request, catalog, facts=model.facts, preset=preset, hardware=sized.hardware)
            )
        except PlanError as error:
            why = _misfit(model.facts, sized.request, sized.hardware) if error.problem.code == _MISFIT else str(error)
    return BatchOfSpec(
        resolution.metadata.name,
        spec.source,
        own.shards,
        min(own.parallelism or own.shards, own.shards),
        sized.gpus,
        sized.gpu,
        settings.concurrency,
        settings.checkpoint_lines,
        tuple(_inputs(resolution, namespace)),
        found,
        why,
    )


def _misfit(model: ModelFacts, request: Request, hardware: Hardware) -> str:
    """Return why a model does not fit in the GPUs of a shard, with the context that would fit."""
    try:
        found = plan(model, replace(request, context_length=None, engine_fits_context=True), hardware)
    except PlanError:
        return f"{model.name} does not fit in the GPUs of a shard; use more or larger GPUs"
    context = request.context_length
    return (
        f"a context of {context} tokens does not fit in the GPUs of a shard, {found.load.context} tokens do; "
        "set `generate.contextLength`, or use more or larger GPUs"
    )


def _inputs(resolution: JobResolution, namespace: str) -> Iterable[BatchInput]:
    """Yield the Datasets, with what the lock or the revision of a bucket says of their files."""
    for each in resolution.inputs.files if resolution.inputs is not None else ():
        if each.dataset is None:
            continue
        dataset = resolution.context.specs.find(kinds_model.Dataset, each.namespace or namespace, each.dataset)
        if dataset is None:
            continue
        source, lock = dataset.spec.source, resolution.context.lock
        files = locked_files.locked_files(source, lock) if lock is not None else None
        if files is not None:
            yield BatchInput(each.dataset, len(files), sum(file.size for file in files.values()))
        elif source.s3 is not None and source.s3.revision is not None:
            count, size, _ = source.s3.revision.split(":")
            yield BatchInput(each.dataset, int(count), int(size))
        else:
            yield BatchInput(each.dataset)


def batch_title(item: BatchOfSpec) -> str:
    """Return the pods of a batch in one line."""
    gpus = f", {item.gpus} × {item.gpu or 'GPU'} each" if item.gpus else ", on CPUs"
    at_once = f", {item.parallel} at a time" if item.parallel < item.shards else ""
    return f"{plural(item.shards, 'shard')}{at_once}{gpus}"


def batch_tables(item: BatchOfSpec) -> list[Rows]:
    """Return a batch as tables: the memory of each GPU, and what the shards read and ask."""
    tables: list[Rows] = []
    rows: list[Sequence[str]] = [(f"input {each.name}", _size(each)) for each in item.inputs]
    total = sum(each.size for each in item.inputs if each.size is not None)
    if item.shards > 1 and total and all(each.size is not None for each in item.inputs):
        rows.append(("each shard", f"about {total / item.shards / GIB:.1f} GiB of lines"))
    if item.answer is not None:
        chosen = item.answer.plan
        sums = [(row.name, gib_text(row.gib), row.how) for row in format.rows(chosen)]
        width = max(len(gib) for _, gib, _ in sums)
        tables.append(
            [("EACH GPU", "GiB".rjust(width), ""), *((name, gib.rjust(width), how) for name, gib, how in sums)]
        )
        rows.append(("context", f"{chosen.load.context} tokens, of {chosen.max_context} that would fit"))
    fit = f"; {item.answer.plan.max_concurrency} sequences of the context fit" if item.answer is not None else ""
    rows.append(("requests", f"{item.concurrency} at a time in each shard{fit}"))
    rows.append(("stored", f"after every {plural(item.checkpoint, 'line')} of a shard"))
    rows.append(("progress", "`kaigen status` shows the lines that are done, of all, while the batch runs"))
    if item.why:
        rows.append(("memory", item.why))
    return [*tables, rows]


def _size(each: BatchInput) -> str:
    if each.files is None or each.size is None:
        return "its size is not known; run `kaigen lock`"
    return f"{plural(each.files, 'file')}, {each.size / GIB:.1f} GiB"


def batch_data(item: BatchOfSpec) -> dict[str, Json]:
    """Return a batch as plain data."""
    inputs: list[Json] = [{"dataset": each.name, "files": each.files, "bytes": each.size} for each in item.inputs]
    data: dict[str, Json] = {
        "shards": item.shards,
        "parallelism": item.parallel,
        "gpusPerShard": item.gpus,
        "gpu": item.gpu or None,
        "concurrency": item.concurrency,
        "checkpointLines": item.checkpoint,
        "inputs": inputs,
    }
    planned: dict[str, Json] = {} if item.answer is None else format.plan_data(item.answer.plan)
    # The batch sets the flags of its vLLM by itself.
    data["plan"] = {name: value for name, value in planned.items() if name != "flags"} or None
    data["why"] = item.why or None
    return {"app": item.name, "source": item.source, "batch": data}
