"""`kaigen plan`: the GPUs for a model, with the calculation."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kaigen.cli.console import Console, table
from kaigen.cli.options import environment_option, read_config, read_config_of
from kaigen.cli.sizing import Command, cloud_option, load_options, output_option, refusals
from kaigen.diagnostics.collector import Diagnostics
from kaigen.dialects.registry import Dialect, own_dialects
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.sizing.answer import Answer

with lazy_imports():
    from kaigen.pipeline import sources
    from kaigen.plan import batches, locked, queues, specs, tables
    from kaigen.plan import prices as plan_prices
    from kaigen.sizing import answer as sizing_answer
    from kaigen.sizing import config_json
    from kaigen.sizing import facts as sizing_facts
    from kaigen.sizing import picture as sizing_picture


PICTURES = (".svg", ".png")
"""File extensions of `--picture`."""


def _count(*names: str, help: str) -> Callable[[Command], Command]:
    return click.option(*names, type=click.IntRange(min=1), metavar="N", help=help)


def _option(dialect: Dialect) -> str:
    return dialect.name.replace("-", "_")


def _estimate_options(command: Command) -> Command:
    """Add an option for each dialect whose system has an estimate of its own."""
    for dialect in own_dialects():
        if dialect.estimator:
            text = f"Show what {dialect.title} would derive, too."
            command = click.option(f"--{dialect.name}", _option(dialect), is_flag=True, help=text)(command)
    return command


@click.command("plan")
@click.argument("words", nargs=-1, metavar="[APP | SPEC]...")
@environment_option("the first that has them")
@click.option("--preset", "--model", "model", metavar="NAME", help="Preset or Hugging Face repository.")
@click.option("--config", "config_file", metavar="FILE", help="The model's config.json, instead of a preset.")
@click.option(
    "--weights", type=click.FloatRange(0, min_open=True), metavar="GIB", help="Size of the weights, for --config."
)
@click.option("--instance-type", metavar="NAME", help="Instance type of the nodes. Default: the best match.")
@click.option("--gpu", metavar="NAME", help="GPU of the nodes, without an instance type.")
@_count("--gpus", help="GPUs per node. Default: all GPUs of the instance type, or 1.")
@click.option("--mig", metavar="PROFILE", help="A slice of the GPU, such as 2g.20gb.")
@cloud_option
@load_options
@click.option("--dtype", metavar="DTYPE", help="bfloat16 or float16. Default: the data type of the model.")
@click.option(
    "--quantization",
    metavar="NAME",
    help="Quantization of the weights by vLLM's name, such as fp8_per_tensor. Default: as in the repository.",
)
@click.option("--kv-cache-dtype", metavar="DTYPE", help="Data type of the KV cache: auto or fp8.")
@click.option(
    "--gpu-memory-utilization",
    "utilization",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Share of the GPU memory for the engine. Default: 0.9.",
)
@_count("--tensor-parallel", help="GPUs that share each layer.")
@_count("--pipeline-parallel", help="Pipeline stages.")
@_count("--data-parallel", help="Copies of the model per node.")
@_count("--nodes", help="Nodes per replica.")
@_count("--replicas", help="Replicas. Default: 1.")
@_estimate_options
@click.option(
    "--tokens-per-second",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Measured throughput of all replicas, for the price of a million tokens.",
)
@click.option("--picture", metavar="FILE", help="Draw the memory of each GPU to an .svg or .png file.")
@output_option
@click.pass_obj
def command(
    console: Console,
    /,
    words: tuple[str, ...],
    environment: str,
    model: str | None,
    config_file: str | None,
    weights: float | None,
    tokens_per_second: float | None,
    picture: str | None,
    output: str,
    **requested: Any,
) -> None:
    """Plan the GPUs for a model.

    Prints memory, nodes and parallelism with the calculation, and the next best three instance types, for each
    Topology that APP or SPEC names (default: all of the repository), for a model of the catalogue or of kaigen.lock by
    --preset or --model, or for any model by --config and --weights. Without nodes, picks the best instance type in the
    catalogue. The other options override the values of the spec. docs/sizing.md explains the calculation.
    """
    dialects = [dialect for dialect in own_dialects() if requested.pop(_option(dialect), False)]
    of_specs = model is None and config_file is None
    _check_usage(words, environment, model, config_file, weights, requested)
    if picture is not None:
        _check_picture(picture)
    if of_specs:
        tokens = tokens_per_second
        _plan_specs(console, words, environment, requested, dialects, tokens=tokens, picture=picture, output=output)
        return
    config = read_config()
    prices = plan_prices.Prices(config.catalog, tokens_per_second, config.region)
    with refusals():
        facts = (
            config_json.read_config_json(config_file, weights)
            if config_file is not None and weights is not None
            else locked.locked_facts(model or "", config)
        )
        name = facts.name if facts is not None else model or ""
        question = sizing_answer.Question(name, sizing_facts.Request(), config.catalog, facts=facts)
        found = sizing_answer.answer(sizing_answer.with_options(question, requested))
    if output == "json":
        _print_json(console, tables.answer_data(found, dialects, prices))
    else:
        _print_answer(console, found, dialects, prices)
    if picture is not None:
        _draw(console, found, picture)


def _check_usage(
    words: tuple[str, ...],
    environment: str,
    model: str | None,
    config_file: str | None,
    weights: float | None,
    requested: dict[str, Any],
) -> None:
    named = [bool(words), model is not None, config_file is not None]
    if sum(named) == 0 and sources.missing_repository(read_config()) is not None:
        raise click.UsageError("name a SPEC, or a model with --preset; `kaigen presets` lists the models")
    if sum(named) > 1:
        raise click.UsageError("SPEC, --preset and --config are mutually exclusive")
    if (config_file is None) != (weights is None):
        raise click.UsageError("--config and --weights require each other")
    of_specs = model is None and config_file is None
    if environment and not of_specs:
        raise click.UsageError("--env requires specs of the repository")
    if requested["instance_type"] and requested["gpu"]:
        raise click.UsageError("--instance-type and --gpu are mutually exclusive")
    if requested["mig"] and not requested["gpu"]:
        raise click.UsageError("--mig requires --gpu")
    if requested["gpus"] is not None and not (requested["instance_type"] or requested["gpu"] or of_specs):
        raise click.UsageError("--gpus requires --instance-type or --gpu")


def _check_picture(path: str) -> None:
    ending = Path(path).suffix.lower()
    if ending not in PICTURES:
        raise click.UsageError(f"--picture {path}: name a file that ends in {' or '.join(PICTURES)}")
    if ending == ".png":
        try:
            import_module("resvg_py")
        except ImportError:
            raise click.UsageError("PNG output requires resvg_py: install kaigen[png]") from None


def _plan_specs(
    console: Console,
    words: tuple[str, ...],
    environment: str,
    requested: dict[str, Any],
    dialects: Sequence[Dialect],
    *,
    tokens: float | None,
    picture: str | None,
    output: str,
) -> None:
    config = read_config_of(console, words, environment)
    prices = plan_prices.Prices(config.catalog, tokens, config.region)
    run, chosen = specs.select_specs(words, config, stdin=sys.stdin.buffer if "-" in words else None)
    found = specs.plan_specs(chosen, run.resolve, lambda question: sizing_answer.with_options(question, requested))
    if picture is not None and len(found.plans) > 1:
        raise click.UsageError("--picture draws one plan; name one APP")
    # Options are about what serves.
    is_plain = not any(requested.values())
    of_batches = batches.plan_batches(chosen, run.resolve) if is_plain else ()
    queued = queues.plan_queues(run) if is_plain else None
    if output == "json":
        rings = [tables.ring_data(item) for item in found.rings]
        rings += [batches.batch_data(item) for item in of_batches]
        of_queues = queues.queue_data(queued) if queued is not None else []
        _print_json(console, [*tables.plans_data(found.plans, dialects, prices), *rings, *of_queues])
    else:
        _print_rings(console, found)
        for number, item in enumerate(found.plans):
            if number or found.rings:
                console.out()
            console.out(f"{item.source}: {item.name}")
            _print_answer(console, item.answer, dialects, prices)
            for rows in (*tables.host_tables(item), *tables.cold_start_tables(item.cold_start)):
                console.out()
                for line in table(rows):
                    console.out(line)
        _print_batches(console, of_batches, first=not (found.plans or found.rings))
        if queued is not None:
            _print_queues(console, queued, first=not (found.plans or found.rings or of_batches))
    for item in found.plans:
        if not item.rendered:
            console.say(
                f"{item.name}: the spec does not say which GPUs the nodes have, so `kaigen render` does not use "
                "this plan; set `resources.instanceType` or `resources.gpuType`"
            )
    for name, text in found.conversions:
        console.out(f"{name}: {text}") if output != "json" else console.say(f"{name}: {text}")
    for without in found.without:
        console.say(f"{without.name}: {without.why}")
    if not (
        found.plans or found.rings or found.without or found.diagnostics or found.conversions or queued or of_batches
    ):
        console.say("no Topology found; `kaigen plan` plans Topologies, and models by --preset or --config")
    problems = Diagnostics(found.diagnostics)
    problems.raise_errors()
    if found.diagnostics:
        console.report(problems.sorted())
    if picture is not None and found.plans:
        _draw(console, found.plans[0].answer, picture)


def _print_rings(console: Console, found: specs.SpecPlans) -> None:
    for number, item in enumerate(found.rings):
        if number:
            console.out()
        console.out(f"{item.source}: {item.name}")
        console.out(tables.ring_title(item))
        for rows in tables.ring_tables(item):
            console.out()
            for line in table(rows):
                console.out(line)


def _print_batches(console: Console, found: Sequence[batches.BatchOfSpec], *, first: bool) -> None:
    for number, item in enumerate(found):
        if number or not first:
            console.out()
        console.out(f"{item.source}: {item.name}")
        console.out(batches.batch_title(item))
        for rows in batches.batch_tables(item):
            console.out()
            for line in table(rows):
                console.out(line)


def _print_queues(console: Console, plan: queues.QueuePlan, *, first: bool) -> None:
    for number, rows in enumerate(queues.queue_tables(plan)):
        if number or not first:
            console.out()
        for line in table(rows):
            console.out(line)
    for why in queues.reasons(plan):
        console.say(f"never admitted: {why}")


def _print_answer(console: Console, found: Answer, dialects: Sequence[Dialect], prices: plan_prices.Prices) -> None:
    console.out(tables.title(found))
    for rows in tables.tables(found, dialects, prices):
        console.out()
        for line in table(rows):
            console.out(line)


def _print_json(console: Console, data: object) -> None:
    console.out(json.dumps(data, indent=2, ensure_ascii=False))


def _draw(console: Console, found: Answer, path: str) -> None:
    is_png = Path(path).suffix.lower() == ".png"
    drawn = sizing_picture.render_png(found.plan) if is_png else sizing_picture.render_svg(found.plan).encode()
    Path(path).write_bytes(drawn)
    console.say(f"wrote {path}")
