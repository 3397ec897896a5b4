"""`kaigen gpus`: GPUs, instance types, and those that fit a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kaigen.catalog.gpus import get_gpu, gpu_names
from kaigen.catalog.instances import find_instance, instance_names, instances
from kaigen.catalog.profiles import get_profile, profile_names
from kaigen.cli.console import Console, table
from kaigen.cli.plan_format import other_row
from kaigen.cli.sizing import cloud_option, load_options, output_option, refusals
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.sizing.answer import choices, gpu_of, no_instance, preset_of
from kaigen.sizing.facts import Request, facts_of
from kaigen.sizing.format import other_data
from kaigen.sizing.ranking import rank

if TYPE_CHECKING:
    from kaigen.catalog.gpus import Gpu
    from kaigen.catalog.instances import Instance
    from kaigen.sizing.format import Json


@click.command("gpus")
@click.argument(
    "action", type=click.Choice(["list", "show", "fit"]), default="list", metavar="[list|show|fit]"
)
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
    if action == "list":
        _list(console, name, cloud, output)
    elif name is None:
        raise click.UsageError(
            f"{action} takes {'a model' if action == 'fit' else 'a GPU or an instance type'}"
        )
    elif action == "show":
        _show(console, name, output)
    else:
        _fit(console, name, cloud or "", context_length, concurrency, output)


def _print(console: Console, output: str, data: object, rows: Sequence[Sequence[str]]) -> None:
    if output == "json":
        console.out(json.dumps(data, indent=2, ensure_ascii=False))
        return
    for line in table(rows):
        console.out(line)


def _list(console: Console, name: str | None, cloud: str | None, output: str) -> None:
    if name is None and cloud is None:
        gpus = [gpu for gpu in map(get_gpu, gpu_names()) if gpu is not None]
        rows = [
            (
                gpu.name,
                gpu.vendor,
                f"{gpu.memory} GiB",
                f"{gpu.usable:g}" if gpu.usable else "–",
                f"{gpu.compute_capability:.1f}" if gpu.compute_capability else "–",
                gpu.resource,
                "yes" if gpu.mig else "",
            )
            for gpu in gpus
        ]
        head = ("GPU", "VENDOR", "MEMORY", "USABLE", "CUDA", "RESOURCE", "MIG")
        _print(console, output, [gpu_data(gpu) for gpu in gpus], [head, *rows])
        return
    with refusals():
        wanted = gpu_of(name).name if name is not None else ""
    found = [item for item in instances(cloud) if not wanted or item.gpu.name == wanted]
    if not found and output == "table":
        console.say(
            f"no instance type of {cloud} has {wanted}" if cloud else f"no instance type has {wanted}"
        )
        return
    rows_ = [
        (
            item.name,
            item.cloud,
            f"{item.count} × {item.gpu.name}",
            f"{item.memory * item.count:g} GiB",
            item.arch,
            "yes" if item.nvme else "",
            item.link,
            item.network,
        )
        for item in found
    ]
    head_ = ("INSTANCE TYPE", "CLOUD", "GPUS", "GPU MEMORY", "ARCH", "NVME", "LINK", "NETWORK")
    _print(console, output, [instance_data(item) for item in found], [head_, *rows_])


def gpu_data(gpu: Gpu) -> dict[str, Json]:
    """A GPU as plain data."""
    return {
        "name": gpu.name,
        "aliases": list(gpu.aliases),
        "vendor": gpu.vendor,
        "memoryGiB": gpu.memory,
        "usableGiB": gpu.usable,
        "computeCapability": gpu.compute_capability,
        "resource": gpu.resource,
        "migGiB": dict(gpu.mig),
        "unsupported": gpu.unsupported or None,
    }


def instance_data(item: Instance) -> dict[str, Json]:
    """An instance type as plain data."""
    return {
        "name": item.name,
        "aliases": list(item.aliases),
        "cloud": item.cloud,
        "gpu": item.gpu.name,
        "gpus": item.count,
        "memoryGiB": item.memory,
        "usableGiB": item.usable,
        "arch": item.arch,
        "nvme": item.nvme,
        "link": item.link or None,
        "network": item.network or None,
        "notes": list(item.notes),
    }


_OF_CLOUD = {"azure": "aks", "azure-arc": "generic", "aws": "eks", "gcp": "gke"}
"""The profile of a cloud's own clusters."""


def _show(console: Console, name: str, output: str) -> None:
    instance = find_instance(name)
    if instance is not None:
        labels = instance.node_labels(_OF_CLOUD[instance.cloud])
        data = instance_data(instance) | {"nodeLabels": {**labels}}
        rows = [
            ("instance type", ", ".join([instance.name, *instance.aliases])),
            ("cloud", instance.cloud),
            ("GPUs", f"{instance.count} × {instance.gpu.name}"),
            ("memory", _memory(instance.memory, instance.usable)),
            ("pods ask for", f"{instance.gpu.resource}: {instance.count}"),
            ("processor", instance.arch),
            ("NVMe", "yes" if instance.nvme else "–"),
            ("between GPUs", instance.link or "–"),
            ("between nodes", instance.network or "–"),
            *(("label", f"{key}={value}") for key, value in labels.items()),
            *(("note", note) for note in instance.notes),
        ]
        _print(console, output, data, rows)
        return
    gpu = get_gpu(name)
    if gpu is None:
        hint = did_you_mean(name, [*gpu_names(), *instance_names()])
        raise click.UsageError(f"no GPU or instance type {name}" + (f"; {hint}" if hint else ""))
    node_labels = {
        (profile.gpu_label, gpu.labels[profile.gpu_column]): None
        for profile in map(get_profile, profile_names())
        if profile.gpu_column in gpu.labels
    }
    having = [item.name for item in instances() if item.gpu.name == gpu.name]
    rows = [
        ("GPU", ", ".join([gpu.name, *gpu.aliases])),
        ("memory", _memory(gpu.memory, gpu.usable)),
        ("compute capability", f"{gpu.compute_capability:.1f}" if gpu.compute_capability else "–"),
        ("pods ask for", gpu.resource),
        *(("label", f"{key}={value}") for key, value in node_labels),
        *(("MIG slice", f"{profile}, {size:g} GiB usable") for profile, size in gpu.mig.items()),
        ("instance types", ", ".join(having) or "none"),
    ]
    if gpu.unsupported:
        rows.append(("note", gpu.unsupported))
    _print(console, output, gpu_data(gpu) | {"instanceTypes": [*having]}, rows)


def _memory(nominal: float, usable: float | None) -> str:
    return f"{nominal:g} GiB each" + (f", {usable:g} usable" if usable else "")


def _fit(
    console: Console, model: str, cloud: str, context_length: int | None, concurrency: int | None, output: str
) -> None:
    request = Request(context_length=context_length, concurrency=concurrency)
    with refusals():
        preset = preset_of(model)
        ranking = rank(facts_of(preset), request, choices(cloud))
        if not ranking.plans:
            raise no_instance(preset.name, cloud, ranking)
    if output == "json":
        data: dict[str, Json] = {
            "fits": [other_data(found) for found in ranking.plans],
            "refused": [
                {"node": item.hardware.name, "code": item.error.problem.code, "why": str(item.error)}
                for item in ranking.refused
            ],
        }
        _print(console, output, data, [])
        return
    head = ("INSTANCE TYPE", "GPUS", "NODES", "PARALLEL", "CONTEXT", "SEQUENCES")
    _print(console, output, None, [head, *map(other_row, ranking.plans)])
    console.say("")
    console.say("sequences of the context's length that fit at once; types with equal GPUs are listed once")
    reasons = [f"{item.hardware.name}: {item.error}" for item in ranking.refused]
    if reasons:
        console.say(f"{len(reasons)} more do not fit" + ("; -v prints why" if console.verbosity < 1 else ":"))
    for reason in reasons:
        console.say(f"  {reason}", level=1)
