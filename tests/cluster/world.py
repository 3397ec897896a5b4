"""Initial objects of a plane: kinds, storage classes and nodes, from the data files in this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from tests.cluster.client import Object

PROVISIONER = "sim.kaigen.dev/volumes"
_FOLDER = Path(__file__).parent


def custom_kinds() -> list[Object]:
    """Return every CustomResourceDefinition."""
    return [_load(path) for path in sorted((_FOLDER / "crds").glob("*.yaml"))]


def _load(path: Path) -> Object:
    # The pure Python loader takes fifteen seconds, libyaml two.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: Object = yaml.load(path.read_text(), loader)
    return loaded


def storage_class(name: str, *, wait: bool, default: bool = False) -> Object:
    """A class whose volumes are simulated.

    Args:
        name: Its name.
        wait: Whether a claim waits for its first pod.
        default: Whether it is for claims that name none.
    """
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": name,
            "annotations": {"storageclass.kubernetes.io/is-default-class": str(default).lower()},
        },
        "provisioner": PROVISIONER,
        "volumeBindingMode": "WaitForFirstConsumer" if wait else "Immediate",
    }


def node(
    name: str,
    *,
    capacity: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Object:
    """A simulated node.

    Args:
        name: Its name.
        capacity: All it has for pods, extended resources too.
        labels: Its labels, in addition to those of every node.
        taints: Its taints.
    """
    usual = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": usual | dict(labels or {})},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": dict(capacity), "allocatable": dict(capacity)},
    }


def _nodes(group: Object) -> list[Object]:
    return [
        node(
            f"{group['group']}-{value.lower().replace('_', '-')}-{number}",
            capacity=group["capacity"],
            labels={group["label"]: value, "topology.kubernetes.io/zone": f"zone-{number}"} | group.get("labels", {}),
            taints=group.get("taints", []),
        )
        for value in group["values"]
        for number in range(group["count"])
    ]


def objects() -> list[Object]:
    """Return the classes and nodes of world.yaml."""
    data = _load(_FOLDER / "world.yaml")
    classes = [
        storage_class(entry["name"], wait=entry["wait"], default=number == 0)
        for number, entry in enumerate(data["storageClasses"])
    ]
    runtimes: list[Object] = [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}
        for name in data["runtimeClasses"]
    ]
    # Volumes of the simulated driver need no attaching.
    driver: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "sim.kaigen.dev"},
        "spec": {"attachRequired": False},
    }
    nodes = [entry for group in data["nodes"] for entry in _nodes(group)]
    return [*classes, *runtimes, driver, *nodes]
