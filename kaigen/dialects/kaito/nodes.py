"""Where the work runs: labels, instance types, parts of GPUs, and nodes that are made for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import LabelSelector, Partition, Resource, ResourceV1Alpha1
from kaigen.dialects.kaito.reading import Reading, Wishes
from kaigen.kinds.spec import Path

if TYPE_CHECKING:
    from kaigen.catalog.instances import Instance

RESERVED = re.compile(
    r"^kaito\.sh/|^karpenter\.kaito\.sh/|^karpenter\.sh/nodepool$|^kubernetes\.azure\.com/|^node\.kubernetes\.io/"
)
"""Labels that KAITO keeps for itself, and takes out of a selector."""

DEFAULT_INSTANCE = "Standard_NC24ads_A100_v4"
"""What `kaito.sh/v1alpha1` takes when no instance type is named (source: its CustomResourceDefinition of v0.12.0)."""

TAINT = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
"""Taint of nodes that KAITO made."""

_WITHOUT_GPU = re.compile(
    r"^(Standard_([ABDEFLM]|DC|EC|HB|HC)[0-9]|[acdhirmtxz][0-9]|[acmtnz][0-9]+-|e2-|c[0-9]+[a-z]*\.)"
)
"""Instance types of families without GPUs, as Azure, AWS and Google name them."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """What is known of the nodes.

    Attributes:
        instance: their type; None when none is named or it has no GPUs.
        gpus: GPUs that a pod gets; None where nothing tells.
        count: how many, as the resource says; None when it does not.
        mig: whether a pod gets a slice of a GPU.
        named: an instance type is named, with GPUs or without.
        profile: of that slice; empty for none.
        at: where the resource speaks of them.
    """

    instance: Instance | None = None
    gpus: int | None = None
    count: int | None = None
    mig: bool = False
    named: bool = False
    profile: str = ""
    at: Path = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """The part of a resource that speaks of nodes.

    Attributes:
        at: where it stands.
        instance_type: as it is written; empty for none.
        partition: a part of the GPUs.
        count: of nodes.
        selector: labels of the nodes.
        selector_at: where the selector stands.
        preferred: names of nodes to choose first.
        gpus_needed: whether the work makes no sense without GPUs.
        by_default: nobody wrote the instance type.
    """

    at: Path
    instance_type: str
    selector: LabelSelector
    selector_at: Path
    partition: Partition | None = None
    count: int | None = None
    preferred: tuple[str, ...] = ()
    gpus_needed: bool = True
    by_default: bool = False


def asked_of(resource: ResourceV1Alpha1, at: Path, *, default: bool, gpus_needed: bool = True) -> Asked:
    """What a `resource` block says of nodes.

    Args:
        resource: the block.
        at: where it stands.
        default: whether its version has a default instance type.
        gpus_needed: whether the work makes no sense without GPUs.
    """
    return Asked(
        at=at,
        instance_type=resource.instance_type or (DEFAULT_INSTANCE if default else ""),
        selector=resource.label_selector,
        selector_at=(*at, "labelSelector"),
        partition=resource.partition if isinstance(resource, Resource) else None,
        count=resource.count,
        preferred=tuple(resource.preferred_nodes),
        gpus_needed=gpus_needed,
        by_default=default and not resource.instance_type,
    )


def place(draft: Draft, asked: Asked, wishes: Wishes, reading: Reading) -> Nodes:
    """Put resources and placement of a pod into a spec of kaigen's own.

    Args:
        draft: the spec.
        asked: what the resource says.
        wishes: what its annotations say.
        reading: takes what is wrong.
    """
    nodes = _instance(draft, asked, reading)
    _selector(draft, asked, reading)
    if asked.preferred:
        _prefer(draft, asked)
    if asked.gpus_needed:
        draft.put(("spec", "placement", "tolerations"), [dict(TAINT)])
    if nodes.named and draft.get(("kind",)) == "Topology":
        _provision(draft, asked, wishes, reading)
    return nodes


def _instance(draft: Draft, asked: Asked, reading: Reading) -> Nodes:
    from kaigen.catalog.instances import find_instance, nearest_instances

    at = (*asked.at, "instanceType")
    name, instance = asked.instance_type, None
    if asked.by_default:
        reading.warning(
            "KG0403",
            f"without `instanceType` kaito.sh/v1alpha1 means `{name}`",
            asked.at,
            "name the one you want; kaito.sh/v1beta1 has no default",
        )
    if name and reading.is_placeholder(name, at, "an instance type"):
        name = ""
    if name:
        instance = find_instance(name)
        without_gpu = instance is None and _WITHOUT_GPU.match(name) is not None
        if instance is None and (asked.gpus_needed or not without_gpu):
            near = nearest_instances(name)
            what = f"`{name}` has no GPU" if without_gpu else f"unknown instance type `{name}`"
            reading.error(
                "KG0409",
                what,
                at,
                f"did you mean `{near[0]}`?"
                if near and not without_gpu
                else "`kaigen gpus` shows those that have",
            )
            return Nodes(count=asked.count)
        draft.put(("spec", "resources", "instanceType"), instance.name if instance else name, at)
        if instance is not None and instance.gpu.unsupported and asked.gpus_needed:
            reading.warning(
                "KG0414", f"`{name}` has {instance.gpu.name} GPUs: {instance.gpu.unsupported}", at
            )
    partition = asked.partition
    gpus: Any = instance.count if instance else None
    count = gpus
    mig = False
    if partition is not None:
        gpus, count, mig = _partition(partition, instance, (*asked.at, "partition"), reading)
    if gpus is not None and asked.gpus_needed:
        draft.put(("spec", "resources", "gpus"), gpus, (*asked.at, "partition") if partition else at)
    profile = gpus["profile"] if isinstance(gpus, dict) else ""
    return Nodes(instance, count, asked.count, mig, bool(name), profile, asked.at)


def _partition(
    partition: Partition, instance: Instance | None, at: Path, reading: Reading
) -> tuple[Any, int | None, bool]:
    """GPUs as kaigen says them, how many those are, and whether it is a slice."""
    if partition.mode == "accelerator":
        if partition.profile is not None:
            reading.error(
                "KG0412",
                "`profile` is a slice of MIG, and `accelerator` gives whole GPUs",
                (*at, "profile"),
                "take `mode: mig`, or delete it",
            )
        if partition.count is None:
            reading.error("KG0412", "`accelerator` needs a `count` of GPUs", at, "add `count`")
            return None, None, False
        if instance is not None and partition.count > instance.count:
            has = f"{instance.count} GPU{'s' * (instance.count > 1)}"
            reading.error(
                "KG0416",
                f"a pod asks for {partition.count} GPUs, and `{instance.name}` has {has}",
                (*at, "count"),
                f"ask for {instance.count} at most, or take a larger instance type",
            )
        return partition.count, partition.count, False
    if partition.profile is None:
        reading.error("KG0412", "`mig` needs a `profile`", at, "add one, such as `profile: 1g.10gb`")
        return None, None, True
    if partition.count not in {None, 1}:
        reading.error(
            "KG0412",
            f"{partition.count} slices of MIG would have to share a model by tensor parallel, and slices cannot",
            (*at, "count"),
            "take one larger slice, or `mode: accelerator` for whole GPUs",
        )
    profile = partition.profile.removeprefix("mig-")
    if instance is not None and profile not in instance.gpu.mig:
        known = ", ".join(instance.gpu.mig)
        reading.error(
            "KG0412",
            f"{instance.gpu.name} of `{instance.name}` has no MIG profile `{profile}`",
            (*at, "profile"),
            f"known: {known}" if known else "GPUs of this type cannot be cut into slices",
        )
    return {"profile": profile, "count": 1}, 1, True


def _selector(draft: Draft, asked: Asked, reading: Reading) -> None:
    selector, at = asked.selector, asked.selector_at
    labels: dict[str, str] = {}
    for key, value in selector.match_labels.items():
        if RESERVED.match(key):
            reading.unused((*at, "matchLabels", key), "KAITO keeps this label for itself")
        else:
            labels[key] = value
    conditions: list[dict[str, Any]] = []
    for index, condition in enumerate(selector.match_expressions):
        if RESERVED.match(condition.key):
            reading.unused((*at, "matchExpressions", index), "KAITO keeps this label for itself")
            continue
        wants = condition.operator in {"In", "NotIn"}
        if wants != bool(condition.values):
            reading.error(
                "KG0412",
                f"`{condition.operator}` {'needs' if wants else 'takes no'} values",
                (*at, "matchExpressions", index, "operator"),
            )
            continue
        values = {"values": list(condition.values)} if condition.values else {}
        conditions.append({"key": condition.key, "operator": condition.operator, **values})
    if labels:
        draft.put(("spec", "placement", "nodeSelector"), labels, (*at, "matchLabels"))
    if conditions:
        term = {"nodeSelectorTerms": [{"matchExpressions": conditions}]}
        draft.put(
            (
                "spec",
                "placement",
                "affinity",
                "nodeAffinity",
                "requiredDuringSchedulingIgnoredDuringExecution",
            ),
            term,
        )
        draft.origins["spec", "placement", "affinity"] = (*at, "matchExpressions")
    if not labels and not conditions:
        reading.warning(
            "KG0414",
            "`labelSelector` names no label of its own, which KAITO refuses; here it means every node",
            at,
            "name a label that the nodes have",
        )


def _prefer(draft: Draft, asked: Asked) -> None:
    """KAITO takes these nodes first at best, so a preference it is; nowadays it does not read them at all."""
    names = list(asked.preferred)
    preference = {
        "weight": 100,
        "preference": {
            "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]
        },
    }
    path: Path = (
        "spec",
        "placement",
        "affinity",
        "nodeAffinity",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    draft.put(path, [preference], (*asked.at, "preferredNodes"))


def _provision(draft: Draft, asked: Asked, wishes: Wishes, reading: Reading) -> None:
    """Nodes are made where the profile has Karpenter, as KAITO makes them wherever an instance type is named."""
    chosen = wishes.provisioning or ("karpenter" if reading.context.profile in {"aks", "eks"} else "none")
    if chosen == "none":
        if wishes.node_class:
            reading.unused(
                reading.annotation_at("kaito.sh/node-class-name"),
                f"no nodes are made for profile `{reading.context.profile}`",
                "choose profile aks or eks in kaigen.yaml",
            )
        return
    at: Path = (*asked.at, "instanceType")
    if wishes.node_class:
        draft.put(("spec", "provisioning", "karpenter", "nodeClass", "name"), wishes.node_class)
        draft.origins["spec", "provisioning"] = reading.annotation_at("kaito.sh/node-class-name")
    else:
        draft.put(("spec", "provisioning"), "karpenter", at)
