"""GPU models by name. The table is `gpus.json`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from kaigen.catalog.json_tables import load_table


class Gpu(Struct, frozen=True):
    """One GPU model.

    Attributes:
        name: catalogue name.
        memory: nominal memory of one, in GiB.
        resource: extended resource of its device plugin.
        labels: values of node labels, by column of a profile.
        vendor: `nvidia`, `amd` or `aws`.
        usable: memory that programs can use, in GiB; None when it was not measured.
        compute_capability: of CUDA; None for other vendors.
        mig: usable memory of a slice in GiB, by MIG profile; empty without MIG.
        unsupported: why engines do not support it; empty when they do.
        aliases: other names.
    """

    name: str
    memory: int
    resource: str
    labels: Mapping[str, str]
    vendor: str
    usable: float | None
    compute_capability: float | None
    mig: Mapping[str, float]
    unsupported: str
    aliases: tuple[str, ...]


@cache
def _index() -> dict[str, dict[str, Any]]:
    entries = load_table("gpus")["gpus"]
    found = {alias.lower(): entry for entry in entries for alias in entry.get("aliases", ())}
    return found | {entry["name"].lower(): entry for entry in entries}


def gpu_names() -> tuple[str, ...]:
    """Return every catalogue name."""
    return tuple(entry["name"] for entry in load_table("gpus")["gpus"])


def get_gpu(name: str) -> Gpu | None:
    """Return the GPU of a name or alias, ignoring case; None when there is none."""
    entry = _index().get(name.lower())
    if entry is None:
        return None
    return Gpu(
        name=entry["name"],
        memory=entry["memoryGiB"],
        resource=entry["resource"],
        labels=entry["labels"],
        vendor=entry["vendor"],
        usable=entry.get("usableGiB"),
        compute_capability=entry.get("computeCapability"),
        mig=entry.get("mig", {}),
        unsupported=entry.get("unsupported", ""),
        aliases=tuple(entry.get("aliases", ())),
    )
