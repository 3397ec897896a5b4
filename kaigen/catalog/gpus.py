"""GPU models by the names that people use. The table is `gpus.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kaigen.catalog.data import load_table


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU model.

    Attributes:
        name: catalogue name.
        memory: nominal memory of one, in GiB.
        resource: extended resource that its device plugin offers.
        labels: value of the node label by the column that a profile names.
        vendor: `nvidia`, `amd` or `aws`.
        usable: memory that programs are given, in GiB; None where nobody measured it.
        compute_capability: of CUDA; None for other vendors.
        mig: memory that programs are given in a slice, in GiB, by MIG profile; empty where it has none.
        unsupported: why engines cannot run on it; empty where they can.
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
    """Every catalogue name."""
    return tuple(entry["name"] for entry in load_table("gpus")["gpus"])


def get_gpu(name: str) -> Gpu | None:
    """The GPU of that catalogue name or alias, whatever its case; None when there is none."""
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
