"""What one entry of `quota` is: the nodes of a ResourceFlavor, and how much of each resource they have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct, field

from kaigen.catalog.gpus import get_gpu, gpu_hint
from kaigen.catalog.instances import find_instance, machine, nearest_instances
from kaigen.compile.context import Context
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.queue import Quota
from kaigen.kubernetes.quantities import NANO, nano

INCOMPLETE = "KG0475"
_UNLIMITED = {"cpu": 10**6 * NANO, "memory": 2**50 * NANO}
"""Cores and bytes that no cluster has: Kueue admits no pod that requests a resource without a quota."""


class FlavorQuota(Struct, frozen=True):
    """The quota of one ResourceFlavor.

    Attributes:
        suffix: end of the name of the flavor.
        path: the entry in the spec.
        labels: of the nodes.
        taints: of the nodes, which only some pods tolerate.
        amounts: in billionths of the unit, by resource.
        borrow: what may be borrowed at most, in billionths; no limit for a missing resource.
        lend: what others may use at most, in billionths; no limit for a missing resource.
    """

    suffix: str
    path: FieldPath
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    amounts: Mapping[str, int] = field(default_factory=dict)
    borrow: Mapping[str, int] = field(default_factory=dict)
    lend: Mapping[str, int] = field(default_factory=dict)


class _Nodes(Struct, frozen=True):
    """What an entry names: how many units, their labels, and what all of them have."""

    suffix: str
    units: int
    labels: Mapping[str, str]
    amounts: Mapping[str, int]
    unlimited: tuple[str, ...] = ()


def flavor_quota(entry: Quota, context: Context, path: FieldPath) -> FlavorQuota:
    """Return the quota of an entry.

    Args:
        entry: the entry.
        context: its profile has the labels of nodes, its catalog their GPUs.
        path: place of the entry in the spec.

    Raises:
        ProblemError: the entry is incomplete, or names what the catalogue does not have.
    """
    nodes = _nodes(entry, context, path)
    given = {"cpu": entry.cpu, "memory": entry.memory, **entry.resources}
    own = {name: nano(amount) or 0 for name, amount in given.items() if amount is not None}
    amounts = {**nodes.amounts, **own}
    limited = [name for name in amounts if name in own or name not in nodes.unlimited]

    def share(units: int | None) -> dict[str, int]:
        """Return what so many of the units have."""
        if units is None:
            return {}
        return {name: -(-amounts[name] * units // nodes.units) if nodes.units else 0 for name in limited}

    labels, suffix = {**nodes.labels, **entry.node_labels}, nodes.suffix
    taints: tuple[Mapping[str, str], ...] = ()
    if entry.spot:
        spot_labels, taints = _spot(context, path)
        labels, suffix = {**labels, **spot_labels}, f"{suffix}-spot"
    return FlavorQuota(suffix, path, labels, taints, amounts, share(entry.borrow), share(entry.lend))


def _nodes(entry: Quota, context: Context, path: FieldPath) -> _Nodes:
    if entry.instance_type is not None and entry.gpu_type is not None:
        raise ProblemError(INCOMPLETE, "`instanceType` and `gpuType` exclude each other", path, "leave one out")
    for name, value, needs, other in (
        ("instanceType", entry.instance_type, "count", entry.count),
        ("gpuType", entry.gpu_type, "gpus", entry.gpus),
    ):
        if (value is None) is not (other is None):
            missing, present = (needs, name) if other is None else (name, needs)
            raise ProblemError(INCOMPLETE, f"`{present}` needs `{missing}`", path, f"add `{missing}`")
    if entry.instance_type is not None:
        return _instances(entry, entry.instance_type, entry.count or 0, context, path)
    if entry.gpu_type is not None:
        return _gpus(entry.gpu_type, entry.gpus or 0, context, path)
    if entry.cpu is None or entry.memory is None:
        raise ProblemError(
            INCOMPLETE,
            "the entry does not say how much it is",
            path,
            "set `instanceType` and `count`, `gpuType` and `gpus`, or `cpu` and `memory`",
        )
    if entry.borrow is not None or entry.lend is not None:
        name = "borrow" if entry.borrow is not None else "lend"
        message = f"`{name}` counts nodes or GPUs, and the entry has only CPUs and memory"
        raise ProblemError(INCOMPLETE, message, (*path, name), "leave it out, or name the nodes by `instanceType`")
    return _Nodes("nodes", 1, {}, {})


def _instances(entry: Quota, name: str, count: int, context: Context, path: FieldPath) -> _Nodes:
    found = find_instance(name, context.catalog)
    if found is None:
        near = nearest_instances(name, context.catalog)
        hint = f"did you mean {near[0]}? " if near else ""
        hint += "Or add it to the catalogue of the repository, or set `cpu`, `memory` and `nodeLabels`"
        raise ProblemError("KG0306", f"unknown instance type `{name}`", (*path, "instanceType"), hint)
    amounts = {found.gpu.resource: found.count * count * NANO}
    node = machine(found.name)
    if node is not None:
        amounts |= {"cpu": node.cpus * count * NANO, "memory": node.memory * count * NANO}
    elif entry.cpu is None or entry.memory is None:
        message = f"kaigen does not know CPUs and memory of `{found.name}`"
        raise ProblemError(INCOMPLETE, message, path, "set `cpu` and `memory` of all nodes together")
    labels = {"node.kubernetes.io/instance-type": found.name}
    profile = context.profile
    if not profile.gpu_instance_types:
        # Pods that name the GPU select nodes by these labels, and Kueue compares them with those of the flavor.
        known = found.node_labels(profile.name)
        labels |= {key: known[key] for group in profile.gpu_labels for key in group if key in known}
    return _Nodes(_name(found.name), count, labels, amounts)


def _gpus(name: str, count: int, context: Context, path: FieldPath) -> _Nodes:
    gpu = get_gpu(name, context.catalog)
    if gpu is None:
        hint = gpu_hint(name, context.catalog)
        raise ProblemError("KG0306", f"unknown GPU type `{name}`", (*path, "gpuType"), hint)
    labels = context.profile.labels_of(gpu.labels)
    amounts = {gpu.resource: count * NANO, **_UNLIMITED}
    return _Nodes(_name(gpu.name), count, labels, amounts, tuple(_UNLIMITED))


def _spot(context: Context, path: FieldPath) -> tuple[Mapping[str, str], tuple[Mapping[str, str], ...]]:
    spot = context.profile.spot
    if spot is None:
        raise ProblemError(
            "KG0308",
            f"profile `{context.profile.name}` has no spot nodes",
            (*path, "spot"),
            "set `nodeLabels` to the labels of the spot nodes, or choose aks, eks or gke in kaigen.yaml",
        )
    labels = spot.node_selector or spot.node_labels[0]
    taints = tuple({key: each[key] for key in ("key", "value", "effect")} for each in spot.tolerations)
    return labels, taints


def _name(text: str) -> str:
    return re.sub("[^a-z0-9.]+", "-", text.lower())
