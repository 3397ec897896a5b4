"""Instance types with GPUs. The table is `instances.json`, with the rows of the repository."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from kaigen.catalog.catalog import Catalog, Row
from kaigen.catalog.gpus import Gpu, get_gpu
from kaigen.catalog.json_tables import load_table
from kaigen.diagnostics.suggest import nearest
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import profiles

ON_PREMISES = "on-premises"
CLOUDS = ("azure", "azure-arc", "aws", "gcp", ON_PREMISES)
"""Clouds of the instance types. kaigen's table has none on premises; a repository may."""


class Instance(Struct, frozen=True):
    """One instance type.

    Attributes:
        name: as the cloud writes it.
        cloud: one of `CLOUDS`.
        gpu: its GPU model.
        count: number of GPUs, or of fractions of one.
        memory: nominal memory of one, in GiB; less than the GPU's for a fraction.
        usable: memory of one that programs can use, in GiB; None when it was not measured.
        arch: CPU architecture, as in Kubernetes.
        nvme: whether it has local NVMe disks.
        link: between its GPUs: `nvlink`, `infinity-fabric` or `pcie`; empty for one GPU or when unknown.
        network: between GPUs of several nodes; empty when there is none or it is unknown.
        labels: values of node labels that differ from the GPU's, by column of a profile.
        aliases: other names.
        notes: remarks.
        row: its row of the table, for columns that only a dialect reads.
        price: of an hour, as the repository says; None when it does not.
        currency: of the price.
    """

    name: str
    cloud: str
    gpu: Gpu
    count: int
    memory: float
    usable: float | None
    arch: str
    nvme: bool
    link: str
    network: str
    labels: Mapping[str, str]
    aliases: tuple[str, ...]
    notes: tuple[str, ...]
    row: Mapping[str, Any]
    price: float | None = None
    currency: str = ""

    def node_labels(self, profile: str) -> dict[str, str]:
        """Return the labels of nodes of this type in clusters of a profile, including those of its GPUs.

        Raises:
            KeyError: there is no such profile.
        """
        facts = profiles.get_profile(profile)
        found = {"node.kubernetes.io/instance-type": self.name, "kubernetes.io/arch": self.arch}
        # A part of a GPU is another product.
        columns = {**(self.gpu.labels if self.memory == self.gpu.memory else {}), **self.labels}
        labels = facts.labels_of(columns)
        found |= labels
        count = _COUNT_LABELS.get(profile)
        if count and facts.gpu_label in labels:
            found[count] = str(self.count)
        return found


_COUNT_LABELS = {
    **dict.fromkeys(("generic", "k3s", "kind", "aks"), "nvidia.com/gpu.count"),
    "eks": "karpenter.k8s.aws/instance-gpu-count",
}
"""Node label with the number of GPUs, by profile; GKE has none that is always set."""


class ListPrice(Struct, frozen=True):
    """What a cloud asks for an instance type on demand, without discounts.

    Attributes:
        usd: price of an hour.
        region: region of the cloud.
        date: day of the price.
    """

    usd: float
    region: str
    date: str


def list_price(item: Instance) -> ListPrice | None:
    """Return the list price of an instance type; None when no source has it."""
    cloud = load_table("prices")["clouds"].get(item.cloud, {})
    usd = cloud.get("usdPerHour", {}).get(item.name)
    return ListPrice(usd, cloud["region"], cloud["date"]) if usd is not None else None


def listed_clouds() -> list[str]:
    """Return the clouds with list prices."""
    return sorted(load_table("prices")["clouds"])


class Machine(Struct, frozen=True):
    """What a node of an instance type has, before the system takes its part.

    Attributes:
        name: of the instance type.
        cpus: vCPUs.
        memory: in bytes.
    """

    name: str
    cpus: int
    memory: int


def machine(name: str) -> Machine | None:
    """Return what a node of an instance type has; None when no source says it."""
    for cloud in load_table("machines")["clouds"].values():
        if name in cloud["machines"]:
            cpus, mebibytes = cloud["machines"][name]
            return Machine(name, cpus, mebibytes * 2**20)
    return None


@lru_cache(maxsize=16)
def _index(catalog: Catalog) -> Mapping[str, Row]:
    names = {row["name"]: row.get("aliases", ()) for row in catalog.rows("instances")}
    return catalog.index("instances", names)


@lru_cache(maxsize=4096)
def _instance(name: str, catalog: Catalog) -> Instance:
    entry = _index(catalog)[name]
    gpu = get_gpu(entry["gpu"], catalog)
    assert gpu is not None, f"{entry['name']} has an unknown GPU"
    return Instance(
        name=entry["name"],
        cloud=entry["cloud"],
        gpu=gpu,
        count=entry["count"],
        memory=entry.get("memoryGiB", gpu.memory),
        usable=entry.get("usableGiB", gpu.usable),
        arch=entry.get("arch", "amd64"),
        nvme=entry.get("nvme", False),
        link=entry.get("link", ""),
        network=entry.get("network", ""),
        labels=entry.get("labels", {}),
        aliases=tuple(entry.get("aliases", ())),
        notes=tuple(entry.get("notes", ())),
        row=entry,
        price=catalog.prices.get(entry["name"]),
        currency=catalog.currency,
    )


def instance_names(catalog: Catalog) -> tuple[str, ...]:
    """Return every name: by cloud, then by GPU memory, then in the order of the cloud."""
    return tuple(row["name"] for row in catalog.rows("instances"))


def instances(catalog: Catalog, cloud: str | None = None) -> tuple[Instance, ...]:
    """Return every instance type, or those of a cloud, in the order of `instance_names`."""
    return tuple(
        _instance(entry["name"].lower(), catalog)
        for entry in catalog.rows("instances")
        if cloud is None or entry["cloud"] == cloud
    )


def find_instance(name: str, catalog: Catalog) -> Instance | None:
    """Return the instance type of a name or alias, ignoring case; None when there is none."""
    key = name.lower()
    return _instance(key, catalog) if key in _index(catalog) else None


def nearest_instances(name: str, catalog: Catalog, *, limit: int = 3) -> list[str]:
    """Return names of similar instance types, nearest first."""
    return nearest(name, instance_names(catalog), limit=limit)
