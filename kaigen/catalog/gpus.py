"""GPU models by the names that people use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kaigen.catalog.data import load


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU model.

    Attributes:
        name: catalogue name.
        memory: nominal memory of one, in GiB.
        resource: extended resource that its device plugin offers.
        labels: value of the node label by the column that a profile names.
    """

    name: str
    memory: int
    resource: str
    labels: Mapping[str, str]


def gpu_names() -> tuple[str, ...]:
    """Every catalogue name."""
    return tuple(load("gpus")["gpus"])


def get_gpu(name: str) -> Gpu | None:
    """The GPU of that catalogue name, whatever its case; None when there is none."""
    gpus = load("gpus")["gpus"]
    exact = name if name in gpus else next((known for known in gpus if known.lower() == name.lower()), None)
    if exact is None:
        return None
    data = gpus[exact]
    return Gpu(exact, data["memoryGiB"], data["resource"], data["labels"])
