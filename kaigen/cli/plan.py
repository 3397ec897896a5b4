"""`kaigen plan`: on which GPUs a model runs, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from kaigen.cli.console import Console, table
from kaigen.cli.sizing import Command, cloud_option, load_options, output_option, refusals

if TYPE_CHECKING:
    from kaigen.sizing.answer import Answer
    from kaigen.sizing.kaito import KaitoEstimate
    from kaigen.sizing.result import Plan


def _count(*names: str, help: str) -> Callable[[Command], Command]:
    return click.option(*names, type=click.IntRange(min=1), metavar="N", help=help)


@click.command("plan")
@click.option(
    "--preset", "--model", "model", required=True, metavar="NAME", help="Preset, or Hugging Face repository."
)
@click.option("--instance-type", metavar="NAME", help="Nodes of this type. Default: the best there is.")
@click.option("--gpu", metavar="NAME", help="Nodes with this GPU, whatever their type.")
@_count("--gpus", help="GPUs of a node. Default: all of the instance type's, or 1.")
@click.option("--mig", metavar="PROFILE", help="A slice of the GPU, such as 2g.20gb.")
@cloud_option
@load_options
@click.option("--dtype", metavar="DTYPE", help="bfloat16 or float16. Default: the model's own.")
@click.option(
    "--quantization",
    metavar="NAME",
    help="Quantize the weights: fp8, awq, … Default: as the repository has them.",
)
@click.option("--kv-cache-dtype", metavar="DTYPE", help="Of the KV cache: auto or fp8.")
@click.option(
    "--gpu-memory-utilization",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Share of a GPU that the engine may take. Default: 0.9.",
)
@_count("--tensor-parallel", help="GPUs that share each layer.")
@_count("--pipeline-parallel", help="Stages that the layers are dealt to.")
@_count("--data-parallel", help="Copies of the model within a node.")
@_count("--nodes", help="Nodes of each replica.")
@_count("--replicas", help="How often it all runs. Default: 1.")
@click.option("--kaito", is_flag=True, help="Show what KAITO would derive, too.")
@click.option("--svg", metavar="FILE", help="Draw the memory of each GPU.")
@output_option
@click.pass_obj
def command(
    console: Console,
    model: str,
    instance_type: str | None,
    gpu: str | None,
    gpus: int | None,
    mig: str | None,
    cloud: str | None,
    context_length: int | None,
    concurrency: int | None,
    dtype: str | None,
    quantization: str | None,
    kv_cache_dtype: str | None,
    gpu_memory_utilization: float | None,
    tensor_parallel: int | None,
    pipeline_parallel: int | None,
    data_parallel: int | None,
    nodes: int | None,
    replicas: int | None,
    kaito: bool,
    svg: str | None,
    output: str,
) -> None:
    """Plan on which GPUs a model runs.

    Memory, nodes and parallelism, with the sum: on nodes of --instance-type, or with --gpu and --gpus, or on the best
    instance type of the catalogue; and the next best three. docs/sizing.md says what the sum rests on.
    """
    from kaigen.sizing.answer import Question, answer
    from kaigen.sizing.facts import Request

    if instance_type and gpu:
        raise click.UsageError("--instance-type says which GPU there is; leave --gpu out")
    if mig and not gpu:
        raise click.UsageError("--mig goes with --gpu")
    if gpus is not None and not (instance_type or gpu):
        raise click.UsageError("--gpus goes with --instance-type or --gpu")
    request = Request(
        context_length=context_length,
        concurrency=concurrency,
        dtype=dtype,
        quantization=quantization,
        kv_cache_dtype=kv_cache_dtype,
        utilization=gpu_memory_utilization,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        data_parallel=data_parallel,
        nodes=nodes,
        replicas=replicas or 1,
    )
    question = Question(model, request, instance_type or "", gpu or "", gpus, mig or "", cloud or "")
    with refusals():
        found = answer(question)
    estimates = _estimates(found) if kaito else None
    if output == "json":
        _json(console, found, estimates)
    else:
        _table(console, found, estimates)
    if svg is not None:
        from pathlib import Path

        from kaigen.sizing.picture import render_svg

        Path(svg).write_text(render_svg(found.plan), encoding="utf-8", newline="\n")
        console.say(f"wrote {svg}")


def _estimates(found: Answer) -> dict[str, KaitoEstimate | str]:
    """What KAITO derives, or why it cannot, by version."""
    from kaigen.sizing.constants import kaito_constants
    from kaigen.sizing.kaito import estimate_preset, node_like
    from kaigen.sizing.problem import PlanError

    node, asked = node_like(found.plan.hardware), found.plan.request.context_length
    told: dict[str, KaitoEstimate | str] = {}
    for version in kaito_constants():
        try:
            told[version] = estimate_preset(found.preset, node, context=asked, version=version)
        except PlanError as error:
            told[version] = str(error)
    return told


def _json(console: Console, found: Answer, estimates: dict[str, KaitoEstimate | str] | None) -> None:
    import json

    from kaigen.sizing.told import kaito_data, other_data, plan_data

    data = plan_data(found.plan) | {"others": [other_data(other) for other in found.others]}
    if estimates is not None:
        data["kaito"] = {
            version: {"refused": item} if isinstance(item, str) else kaito_data(item)
            for version, item in estimates.items()
        }
    console.out(json.dumps(data, indent=2, ensure_ascii=False))


def _table(console: Console, found: Answer, estimates: dict[str, KaitoEstimate | str] | None) -> None:
    from kaigen.sizing.plan import told_gib, told_layout
    from kaigen.sizing.told import command_line, rows, told_hardware

    plan = found.plan
    load, layout = plan.load, plan.layout
    copies = f", {plan.request.replicas} replicas" if plan.request.replicas > 1 else ""
    console.out(f"{plan.facts.name} on {told_hardware(plan)}: {told_layout(layout)}{copies}")
    console.out()
    sums = [(row.name, told_gib(row.gib), row.how) for row in rows(plan)]
    width = max(len(value) for _, value, _ in sums)
    for line in table(
        [("EACH GPU", "GiB".rjust(width), ""), *((name, gib.rjust(width), how) for name, gib, how in sums)]
    ):
        console.out(line)
    console.out()
    facts = [
        ("context", f"{load.context} tokens, of {plan.max_context} that would fit"),
        ("sequences", f"{load.concurrency} of that length at once, of {plan.max_concurrency} that would fit"),
        ("flags", command_line(plan)),
    ]
    for version, item in (estimates or {}).items():
        facts.append((f"KAITO {version}", item if isinstance(item, str) else _kaito(item)))
    facts += [("note", note) for note in plan.notes]
    for line in table(facts):
        console.out(line)
    if found.others:
        console.out()
        for line in table([_HEAD, *map(other_row, found.others)]):
            console.out(line)


_HEAD = ("NEXT BEST", "GPUS", "NODES", "PARALLEL", "FREE GiB", "SEQUENCES")


def other_row(plan: Plan) -> tuple[str, str, str, str, str, str]:
    """A plan among others, as a row of a table."""
    hardware, layout = plan.hardware, plan.layout
    return (
        hardware.name,
        f"{hardware.count} × {hardware.gpu}",
        str(layout.nodes),
        parallel(layout.tp, layout.pp, layout.dp),
        f"{plan.memory.free:.1f}",
        str(plan.max_concurrency),
    )


def parallel(tp: int, pp: int, dp: int) -> str:
    """Parallelism in short."""
    parts = [f"{name}{size}" for name, size in (("tp", tp), ("pp", pp), ("dp", dp)) if size > 1]
    return " ".join(parts) or "–"


def _kaito(item: KaitoEstimate) -> str:
    from kaigen.sizing.told import count

    shape = parallel(item.tp, item.pp, item.dp)
    return f"{count(item.nodes, 'node')}, at least {count(item.min_gpus, 'GPU')}" + (
        f", {shape}" if shape != "–" else ""
    )
