"""Profiles: what kind of cluster the output is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


class Spot(Struct, frozen=True):
    """Labels and tolerations of spot nodes.

    Attributes:
        node_selector: labels that every spot node has.
        tolerations: of pods on spot nodes.
        node_labels: labels of which every spot node has one.
    """

    node_selector: Mapping[str, str]
    tolerations: Sequence[Mapping[str, str]]
    node_labels: Sequence[Mapping[str, str]] = ()


class Profile(Struct, frozen=True):
    """Facts of one kind of cluster.

    Attributes:
        name: as in `kaigen.yaml`.
        storage_class: class of volumes whose spec names none; empty for the cluster's default.
        access_modes: access modes that volumes can have, by storage class; a missing class may have all.
        storage_classes: every class that such clusters are known to have; empty where nothing is known of them.
        shared_volumes: classes of volumes that several nodes can write to, as text.
        gpu_labels: groups of node labels, each with the column of the GPU catalogue that has its values; a GPU has the
            labels of the first group whose first column it has.
        cloud: provider of the instance types; empty for none.
        gpu_instance_types: whether to select nodes by their instance type where they do not have the GPU's label.
        mig_label: node label with the MIG profile of all GPUs, whose slices count as GPUs; empty where each MIG profile
            is a resource of its own.
        gpu_tolerations: of GPU pods.
        gpu_runtime_class: of GPU pods; empty for none.
        spot: None where the profile knows no spot nodes.
        topology: node labels of the levels of the network, by the words that specs use.
        leader_worker_set: whether the cluster has LeaderWorkerSet.
        job_set: whether the cluster has JobSet.
    """

    name: str
    description: str
    storage_class: str
    access_modes: Mapping[str, Sequence[str]]
    storage_classes: frozenset[str]
    shared_volumes: str
    gpu_labels: Sequence[Mapping[str, str]]
    cloud: str
    gpu_instance_types: bool
    mig_label: str
    gpu_tolerations: Sequence[Mapping[str, str]]
    gpu_runtime_class: str
    spot: Spot | None
    topology: Mapping[str, str]
    leader_worker_set: bool
    job_set: bool

    @property
    def gpu_label(self) -> str:
        """Node label with the GPU model."""
        return next(iter(self.gpu_labels[0]))

    def labels_of(self, columns: Mapping[str, str]) -> dict[str, str]:
        """Return the labels of nodes with a GPU; empty where such nodes have none.

        Args:
            columns: values of the GPU's labels by column of the catalogue.
        """
        group = next((each for each in self.gpu_labels if next(iter(each.values())) in columns), {})
        return {label: columns[column] for label, column in group.items() if column in columns}

    def slice_request(self, mig: str, count: int) -> tuple[dict[str, int], dict[str, str]]:
        """Return the resources and the node labels of a pod with slices of a GPU.

        Args:
            mig: MIG profile, such as `1g.10gb`.
            count: number of slices.
        """
        if self.mig_label:
            return {"nvidia.com/gpu": count}, {self.mig_label: mig}
        return {f"nvidia.com/mig-{mig}": count}, {}


def profile_names() -> tuple[str, ...]:
    """Every profile there is."""
    return tuple(yaml_files.load("profiles"))


def profile_of_class(storage_class: str) -> Profile | None:
    """The one profile whose clusters are known to have a storage class of that name; None for none or several."""
    found = [each for each in map(get_profile, profile_names()) if storage_class in each.storage_classes]
    return found[0] if len(found) == 1 else None


def get_profile(name: str) -> Profile:
    """The profile of that name.

    Raises:
        KeyError: when there is none.
    """
    data: dict[str, Any] = yaml_files.load("profiles")[name]
    spot = data.get("spot")
    return Profile(
        name=name,
        description=data["description"],
        storage_class=data["storageClassName"],
        access_modes=data.get("accessModes", {}),
        storage_classes=frozenset({*data.get("accessModes", {}), *data.get("storageClasses", ())}),
        shared_volumes=data.get("sharedVolumes", ""),
        gpu_labels=data["gpuLabels"],
        cloud=data.get("cloud", ""),
        gpu_instance_types=data.get("gpuInstanceTypes", False),
        mig_label=data.get("migLabel", ""),
        gpu_tolerations=data["gpuTolerations"],
        gpu_runtime_class=data["gpuRuntimeClass"],
        spot=Spot(spot.get("nodeSelector", {}), spot["tolerations"], spot.get("nodeLabels", ())) if spot else None,
        topology=data["topology"],
        leader_worker_set=data["leaderWorkerSet"],
        job_set=data["jobSet"],
    )
