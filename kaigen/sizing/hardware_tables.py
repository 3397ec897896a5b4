"""GPUs and instance types of the catalogue as table rows and as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kaigen.catalog.instances import ON_PREMISES, instances, list_price, machine
from kaigen.catalog.profiles import get_profile, profile_names
from kaigen.sizing.constants import GIB

if TYPE_CHECKING:
    from kaigen.catalog.catalog import Catalog
    from kaigen.catalog.gpus import Gpu
    from kaigen.catalog.instances import Instance
    from kaigen.core.json_types import Json

_OF_CLOUD = {"azure": "aks", "azure-arc": "generic", "aws": "eks", "gcp": "gke", ON_PREMISES: "generic"}
"""The profile of a cloud's own clusters."""


def gpu_rows(gpus: Iterable[Gpu]) -> list[tuple[str, ...]]:
    """Return GPUs as the rows of a table, its header first."""
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
    return [("GPU", "VENDOR", "MEMORY", "USABLE", "CUDA", "RESOURCE", "MIG"), *rows]


def instance_rows(types: Iterable[Instance]) -> list[tuple[str, ...]]:
    """Return instance types as the rows of a table, its header first."""
    rows = [
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
        for item in types
    ]
    return [("INSTANCE TYPE", "CLOUD", "GPUS", "GPU MEMORY", "ARCH", "NVME", "LINK", "NETWORK"), *rows]


def gpu_details(gpu: Gpu, catalog: Catalog) -> list[tuple[str, str]]:
    """Return everything about a GPU as rows of a name and a value."""
    node_labels = {
        label: None for profile in map(get_profile, profile_names()) for label in profile.labels_of(gpu.labels).items()
    }
    rows = [
        ("GPU", ", ".join([gpu.name, *gpu.aliases])),
        ("memory", _memory(gpu.memory, gpu.usable)),
        ("compute capability", f"{gpu.compute_capability:.1f}" if gpu.compute_capability else "–"),
        ("pods ask for", gpu.resource),
        *(("label", f"{key}={value}") for key, value in node_labels),
        *(("MIG slice", f"{profile}, {size:g} GiB usable") for profile, size in gpu.mig.items()),
        ("instance types", ", ".join(instances_with(gpu, catalog)) or "none"),
    ]
    return [*rows, ("note", gpu.unsupported)] if gpu.unsupported else rows


def instance_details(item: Instance) -> list[tuple[str, str]]:
    """Return everything about an instance type as rows of a name and a value."""
    listed, node = list_price(item), machine(item.name)
    return [
        ("instance type", ", ".join([item.name, *item.aliases])),
        ("cloud", item.cloud),
        ("GPUs", f"{item.count} × {item.gpu.name}"),
        ("memory", _memory(item.memory, item.usable)),
        ("pods ask for", f"{item.gpu.resource}: {item.count}"),
        ("processor", item.arch + (f", {node.cpus} vCPU" if node else "")),
        *([("node memory", f"{node.memory / GIB:g} GiB")] if node else []),
        ("NVMe", "yes" if item.nvme else "–"),
        ("between GPUs", item.link or "–"),
        ("between nodes", item.network or "–"),
        *([("price", f"{item.price:g} {item.currency} an hour")] if item.price is not None else []),
        *([("list price", f"{listed.usd:.2f} USD an hour ({listed.region}, {listed.date})")] if listed else []),
        *(("label", f"{key}={value}") for key, value in node_labels(item).items()),
        *(("note", note) for note in item.notes),
    ]


def instances_with(gpu: Gpu, catalog: Catalog) -> list[str]:
    """Return the names of the instance types that have a GPU."""
    return [item.name for item in instances(catalog) if item.gpu.name == gpu.name]


def node_labels(item: Instance) -> dict[str, str]:
    """Return the labels of nodes of an instance type in a cluster of its cloud."""
    return item.node_labels(_OF_CLOUD[item.cloud])


def gpu_data(gpu: Gpu) -> dict[str, Json]:
    """Return a GPU as plain data."""
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
    """Return an instance type as plain data."""
    node = machine(item.name)
    return {
        "name": item.name,
        "aliases": list(item.aliases),
        "cloud": item.cloud,
        "gpu": item.gpu.name,
        "gpus": item.count,
        "memoryGiB": item.memory,
        "usableGiB": item.usable,
        "arch": item.arch,
        **({"vcpu": node.cpus, "nodeMemoryGiB": node.memory / GIB} if node else {}),
        "nvme": item.nvme,
        "link": item.link or None,
        "network": item.network or None,
        **({"pricePerHour": item.price, "currency": item.currency} if item.price is not None else {}),
        "notes": list(item.notes),
    }


def _memory(nominal: float, usable: float | None) -> str:
    return f"{nominal:g} GiB each" + (f", {usable:g} usable" if usable else "")
