"""`kaigen gpus`: GPUs, instance types, and those that fit a model."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import get_gpu, gpu_hint, gpu_names, similar_gpus
from kaigen.catalog.instances import find_instance, instance_names, instances
from kaigen.cli.console import Console, table
from kaigen.cli.options import read_config
from kaigen.cli.sizing import cloud_option, load_options, output_option, refusals
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.sizing import hardware_tables
from kaigen.sizing.answer import choices, gpu_of, no_instance, preset_of
from kaigen.sizing.facts import Request, facts_of
from kaigen.sizing.format import plan_rows, ranking_data
from kaigen.sizing.ranking import rank


class _Action(click.Choice[str]):
    """The action, with a hint for a name in its place."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            hint = did_you_mean(value, self.choices) or f"to show a GPU or an instance type: `kaigen gpus show {value}`"
            raise click.UsageError(f"no action {value}; {hint}", ctx)
        return super().convert(value, param, ctx)


@click.command("gpus")
@click.argument("action", type=_Action(["list", "show", "fit"]), default="list", metavar="[list|show|fit]")
@click.argument("name", required=False, metavar="[NAME|MODEL]")
@cloud_option
@load_options
@output_option
@click.pass_obj
def command(
    console: Console,
    action: str,
    name: str | None,
    cloud: str | None,
    context_length: int | None,
    concurrency: int | None,
    output: str,
) -> None:
    """List GPUs and instance types, show one, or rank those that fit a model.

    `list` lists GPUs, or instance types with --cloud or the name of a GPU. `show` takes a GPU or an instance type.
    `fit` takes a preset or Hugging Face repository, and ranks the instance types that it fits on.
    """
    if action != "fit" and (context_length or concurrency):
        raise click.UsageError("--context-length and --concurrency require `fit`")
    if action == "show" and cloud:
        raise click.UsageError("--cloud requires `list` or `fit`")
    catalog = read_config().catalog
    if action == "list":
        _list(console, name, cloud, catalog, output)
    elif name is None:
        raise click.UsageError(f"{action} takes {'a model' if action == 'fit' else 'a GPU or an instance type'}")
    elif action == "show":
        _show(console, name, catalog, output)
    else:
        request = Request(context_length=context_length, concurrency=concurrency)
        _fit(console, name, cloud or "", request, catalog, output)


def _print(console: Console, output: str, data: object, rows: Sequence[Sequence[str]]) -> None:
    if output == "json":
        console.out(json.dumps(data, indent=2, ensure_ascii=False))
        return
    for line in table(rows):
        console.out(line)


def _list(console: Console, name: str | None, cloud: str | None, catalog: Catalog, output: str) -> None:
    if name is None and cloud is None:
        gpus = [gpu for known in gpu_names(catalog) if (gpu := get_gpu(known, catalog)) is not None]
        _print(console, output, list(map(hardware_tables.gpu_data, gpus)), hardware_tables.gpu_rows(gpus))
        return
    with refusals():
        wanted = gpu_of(name, catalog).name if name is not None else ""
    found = [item for item in instances(catalog, cloud) if not wanted or item.gpu.name == wanted]
    if not found and output == "table":
        console.say(f"no instance type of {cloud} has {wanted}" if cloud else f"no instance type has {wanted}")
        return
    data = list(map(hardware_tables.instance_data, found))
    _print(console, output, data, hardware_tables.instance_rows(found))


def _show(console: Console, name: str, catalog: Catalog, output: str) -> None:
    instance = find_instance(name, catalog)
    if instance is not None:
        data = hardware_tables.instance_data(instance) | {"nodeLabels": {**hardware_tables.node_labels(instance)}}
        _print(console, output, data, hardware_tables.instance_details(instance))
        return
    gpu = get_gpu(name, catalog)
    if gpu is None:
        hint = gpu_hint(name, catalog) if similar_gpus(name, catalog) else did_you_mean(name, instance_names(catalog))
        raise click.UsageError(f"no GPU or instance type {name}" + (f"; {hint}" if hint else ""))
    data = hardware_tables.gpu_data(gpu) | {"instanceTypes": [*hardware_tables.instances_with(gpu, catalog)]}
    _print(console, output, data, hardware_tables.gpu_details(gpu, catalog))


def _fit(console: Console, model: str, cloud: str, request: Request, catalog: Catalog, output: str) -> None:
    with refusals():
        preset = preset_of(model, catalog)
        ranking = rank(facts_of(preset), request, choices(catalog, cloud))
        if not ranking.plans:
            raise no_instance(preset.name, cloud, ranking)
    if output == "json":
        _print(console, output, ranking_data(ranking), [])
        return
    _print(console, output, None, plan_rows("INSTANCE TYPE", ranking.plans))
    console.say("")
    console.say("sequences of the context's length that fit at once; types with equal GPUs are listed once")
    reasons = [f"{item.hardware.name}: {item.error}" for item in ranking.refused]
    if reasons:
        console.say(f"{len(reasons)} more do not fit" + ("; -v prints why" if console.verbosity < 1 else ":"))
    for reason in reasons:
        console.say(f"  {reason}", level=1)
