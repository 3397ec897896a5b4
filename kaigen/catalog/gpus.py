"""GPU models by name. The table is `gpus.json`, with the rows of the repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from msgspec import Struct

from kaigen.catalog.catalog import Catalog, Row
from kaigen.catalog.json_tables import load_table
from kaigen.core.text import series
from kaigen.diagnostics.suggest import nearest


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


@lru_cache(maxsize=16)
def _index(catalog: Catalog) -> Mapping[str, Row]:
    return catalog.index("gpus", {row["name"]: row.get("aliases", ()) for row in catalog.rows("gpus")})


def gpu_resources(catalog: Catalog) -> tuple[str, ...]:
    """Return the resources of whole GPUs and other accelerators in the catalogue, sorted."""
    return tuple(sorted({row["resource"] for row in catalog.rows("gpus")}))


def gpu_names(catalog: Catalog) -> tuple[str, ...]:
    """Return every catalogue name."""
    return tuple(row["name"] for row in catalog.rows("gpus"))


def is_gpu_resource(name: str, catalog: Catalog) -> bool:
    """Return whether an extended resource is a GPU or another accelerator, a share or a slice of one."""
    known = _resources().fullmatch(name) is not None
    return known or name in gpu_resources(catalog)


def gpu_of_share(name: str) -> str | None:
    """Return the GPU that a container gets which requests memory or cores of one; None for another resource."""
    return next((gpu for pattern, gpu in _shares() if pattern.fullmatch(name)), None)


@cache
def _shares() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), gpu) for pattern, gpu in load_table("gpus")["shares"].items())


@cache
def _resources() -> re.Pattern[str]:
    return re.compile("|".join(load_table("gpus")["resources"]))


def similar_gpus(name: str, catalog: Catalog) -> list[str]:
    """Return the GPUs that a name may mean: those of its class, else those that differ in letters at its end.

    `A100` may mean `A100-40GB`, and never `A10`: another GPU of a similar name is of another size and price.
    """
    if not any(char.isdigit() for char in name):
        return nearest(name, gpu_names(catalog))
    same = [known for known in gpu_names(catalog) if _class(known) == _class(name)]
    same = same or [known for known in gpu_names(catalog) if _model(known) == _model(name)]
    return list(dict.fromkeys([*nearest(name, same, limit=3), *same]))


def gpu_hint(name: str, catalog: Catalog) -> str:
    """Return what to write for an unknown GPU."""
    similar = [f"`{known}`" for known in similar_gpus(name, catalog)[:3]]
    return f"did you mean {series(similar, 'or')}?" if similar else "list the GPUs with `kaigen gpus list`"


def _class(name: str) -> str:
    """Return a name without its memory and its form: `A100` of `A100-80GB-PCIe`."""
    return name.lower().replace("_", "-").replace(" ", "-").partition("-")[0]


def _model(name: str) -> str:
    """Return the letters and the number that a name begins with: `MI300` of `MI300X`."""
    found = re.match(r"[a-z]+-?[0-9]+", name.lower())
    return found[0].replace("-", "") if found else name.lower()


def get_gpu(name: str, catalog: Catalog) -> Gpu | None:
    """Return the GPU of a name or alias, ignoring case; None when there is none."""
    entry = _index(catalog).get(name.lower())
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
