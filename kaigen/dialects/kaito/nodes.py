"""Nodes of a resource: labels, instance types, partitions of GPUs, and node provisioning."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.catalog.instances import find_instance, nearest_instances
from kaigen.catalog.profiles import get_profile
from kaigen.core.json_types import FieldPath
from kaigen.core.text import plural
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito.blocks import LabelSelector, Partition, Resource, ResourceV1Alpha1
from kaigen.dialects.kaito.resource import Options, ResourceLowering

if TYPE_CHECKING:
    from kaigen.catalog.instances import Instance

RESERVED = re.compile(
    r"^kaito\.sh/|^karpenter\.kaito\.sh/|^karpenter\.sh/nodepool$|^kubernetes\.azure\.com/|^node\.kubernetes\.io/"
)
"""Labels that KAITO reserves and removes from a selector."""

DEFAULT_INSTANCE = "Standard_NC24ads_A100_v4"
"""Default instance type of `kaito.sh/v1alpha1` (source: its CustomResourceDefinition of v0.12.0)."""

TAINT = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
"""Taint of nodes that KAITO creates."""

_WITHOUT_GPU = re.compile(
    r"^(Standard_([ABDEFLM]|DC|EC|HB|HC)[0-9]|[acdhirmtxz][0-9]|[acmtnz][0-9]+-|e2-|c[0-9]+[a-z]*\.)"
)
"""Instance types without GPUs, by the names of Azure, AWS and Google."""


class Nodes(Struct, frozen=True):
    """What is known about the nodes.

    Attributes:
        instance: their instance type; None when it is not set or has no GPUs.
        gpus: GPUs of a pod; None when unknown.
        count: number of nodes in the resource; None when it is not set.
        mig: whether a pod uses a MIG slice.
        named: an instance type is set, with GPUs or without.
        profile: MIG profile; empty for none.
        at: path of the block with the nodes.
    """

    instance: Instance | None = None
    gpus: int | None = None
    count: int | None = None
    mig: bool = False
    named: bool = False
    profile: str = ""
    at: FieldPath = ()

    def device(self, gpus: int, cluster: str) -> dict[str, int]:
        """Return the resource of a container with GPUs, or with a MIG slice of one.

        Args:
            gpus: number of GPUs.
            cluster: name of the cluster profile.
        """
        if self.profile:
            return get_profile(cluster).slice_request(self.profile, 1)[0]
        return {self.instance.gpu.resource if self.instance else "nvidia.com/gpu": gpus}

    def mig_labels(self, cluster: str) -> dict[str, str]:
        """Return the labels of nodes with the MIG profile in a cluster of a profile."""
        return get_profile(cluster).slice_request(self.profile, 1)[1] if self.profile else {}


class NodeRequest(Struct, frozen=True):
    """The nodes that a resource requests.

    Attributes:
        at: path of the block.
        instance_type: as written; empty for none.
        partition: GPUs of each pod.
        count: number of nodes.
        selector: labels of the nodes.
        selector_at: path of the selector.
        preferred: names of preferred nodes.
        gpus_needed: whether the workload requires GPUs.
        by_default: the instance type is the default.
    """

    at: FieldPath
    instance_type: str
    selector: LabelSelector
    selector_at: FieldPath
    partition: Partition | None = None
    count: int | None = None
    preferred: tuple[str, ...] = ()
    gpus_needed: bool = True
    by_default: bool = False


def node_request(resource: ResourceV1Alpha1, at: FieldPath, *, default: bool, gpus_needed: bool = True) -> NodeRequest:
    """Return the nodes that a `resource` block requests.

    Args:
        resource: the block.
        at: path of the block.
        default: whether the API version has a default instance type.
        gpus_needed: whether the workload requires GPUs.
    """
    return NodeRequest(
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


def put_placement(draft: Draft, request: NodeRequest, options: Options, lowering: ResourceLowering) -> Nodes:
    """Put resources and placement of a pod into a spec, and return what is known about its nodes.

    Args:
        draft: the spec.
        request: the requested nodes.
        options: of the resource.
        lowering: collects problems.
    """
    nodes = _instance(draft, request, lowering)
    _selector(draft, request, lowering)
    if request.preferred:
        _prefer(draft, request)
    if request.gpus_needed:
        draft.put(("spec", "placement", "tolerations"), [dict(TAINT)])
    if nodes.named and draft.get(("kind",)) == "Topology":
        _provision(draft, request, options, lowering)
    return nodes


def _instance(draft: Draft, request: NodeRequest, lowering: ResourceLowering) -> Nodes:
    at = (*request.at, "instanceType")
    name, instance = request.instance_type, None
    if request.by_default:
        lowering.warning(
            "KG0403",
            f"`instanceType` is not set; the default of kaito.sh/v1alpha1 is `{name}`",
            request.at,
            "set `instanceType`; kaito.sh/v1beta1 has no default",
        )
    if name and lowering.is_placeholder(name, at, "an instance type"):
        name = ""
    if name:
        instance = find_instance(name, lowering.context.catalog)
        without_gpu = instance is None and _WITHOUT_GPU.match(name) is not None
        if instance is None and (request.gpus_needed or not without_gpu):
            near = nearest_instances(name, lowering.context.catalog)
            what = f"`{name}` has no GPU" if without_gpu else f"unknown instance type `{name}`"
            lowering.error(
                "KG0409",
                what,
                at,
                f"did you mean `{near[0]}`?"
                if near and not without_gpu
                else "`kaigen gpus` lists instance types with GPUs",
            )
            return Nodes(count=request.count)
        draft.put(("spec", "resources", "instanceType"), instance.name if instance else name, at)
        if instance is not None and instance.gpu.unsupported and request.gpus_needed:
            lowering.warning("KG0414", f"`{name}` has {instance.gpu.name} GPUs: {instance.gpu.unsupported}", at)
    partition = request.partition
    gpus: Any = instance.count if instance else None
    count = gpus
    mig = False
    if partition is not None:
        gpus, count, mig = _partition(partition, instance, (*request.at, "partition"), lowering)
    if gpus is not None and request.gpus_needed:
        draft.put(("spec", "resources", "gpus"), gpus, (*request.at, "partition") if partition else at)
    profile = gpus["profile"] if isinstance(gpus, dict) else ""
    return Nodes(instance, count, request.count, mig, bool(name), profile, request.at)


def _partition(
    partition: Partition, instance: Instance | None, at: FieldPath, lowering: ResourceLowering
) -> tuple[Any, int | None, bool]:
    """Return the value of `resources.gpus`, the number of GPUs, and whether it is a MIG slice."""
    if partition.mode == "accelerator":
        if partition.profile is not None:
            lowering.error(
                "KG0412",
                "`profile` is for `mode: mig`, and the mode is `accelerator`",
                (*at, "profile"),
                "set `mode: mig`, or delete `profile`",
            )
        if partition.count is None:
            lowering.error("KG0412", "`mode: accelerator` requires `count`", at, "add `count`")
            return None, None, False
        if instance is not None and partition.count > instance.count:
            has = f"{plural(instance.count, 'GPU')}"
            lowering.error(
                "KG0416",
                f"`count` is {partition.count}, and `{instance.name}` has {has}",
                (*at, "count"),
                f"set at most {instance.count}, or use a larger instance type",
            )
        return partition.count, partition.count, False
    if partition.profile is None:
        lowering.error("KG0412", "`mode: mig` requires `profile`", at, "add `profile`, such as `1g.10gb`")
        return None, None, True
    if partition.count not in {None, 1}:
        lowering.error(
            "KG0412",
            f"`count` is {partition.count}, and MIG slices cannot share a model",
            (*at, "count"),
            "use one larger slice, or `mode: accelerator` for whole GPUs",
        )
    profile = partition.profile.removeprefix("mig-")
    if instance is not None and profile not in instance.gpu.mig:
        known = ", ".join(instance.gpu.mig)
        lowering.error(
            "KG0412",
            f"{instance.gpu.name} of `{instance.name}` has no MIG profile `{profile}`",
            (*at, "profile"),
            f"known: {known}" if known else "this GPU does not support MIG",
        )
    return {"profile": profile, "count": 1}, 1, True


def _selector(draft: Draft, request: NodeRequest, lowering: ResourceLowering) -> None:
    selector, at = request.selector, request.selector_at
    labels: dict[str, str] = {}
    for key, value in selector.match_labels.items():
        if RESERVED.match(key):
            lowering.unused((*at, "matchLabels", key), "KAITO reserves this label")
        else:
            labels[key] = value
    conditions: list[dict[str, Any]] = []
    for index, condition in enumerate(selector.match_expressions):
        if RESERVED.match(condition.key):
            lowering.unused((*at, "matchExpressions", index), "KAITO reserves this label")
            continue
        needs_values = condition.operator in {"In", "NotIn"}
        if needs_values != bool(condition.values):
            lowering.error(
                "KG0412",
                f"`{condition.operator}` {'requires' if needs_values else 'does not accept'} `values`",
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
            ("spec", "placement", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"), term
        )
        draft.origins["spec", "placement", "affinity"] = (*at, "matchExpressions")
    if not labels and not conditions:
        reserved = bool(selector.match_labels or selector.match_expressions)
        lowering.warning(
            "KG0414",
            "`labelSelector` has only labels that KAITO removes, so it selects every node"
            if reserved
            else "`labelSelector` has no label, so it selects every node; KAITO rejects it",
            at,
            "add a label of the nodes",
        )


def _prefer(draft: Draft, request: NodeRequest) -> None:
    """Prefer nodes by name, as early versions of KAITO did; later ones do not read the field."""
    names = list(request.preferred)
    preference = {
        "weight": 100,
        "preference": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]},
    }
    path: FieldPath = (
        "spec",
        "placement",
        "affinity",
        "nodeAffinity",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    draft.put(path, [preference], (*request.at, "preferredNodes"))


def _provision(draft: Draft, request: NodeRequest, options: Options, lowering: ResourceLowering) -> None:
    """Request nodes from Karpenter where the profile has it; KAITO creates nodes for every instance type."""
    chosen = options.provisioning or ("karpenter" if lowering.context.profile in {"aks", "eks"} else "none")
    if chosen == "none":
        if options.node_class:
            lowering.unused(
                lowering.annotation_at("kaito.sh/node-class-name"),
                f"kaigen creates no nodes for profile `{lowering.context.profile}`",
                "use profile aks or eks in kaigen.yaml",
            )
        return
    at: FieldPath = (*request.at, "instanceType")
    if options.node_class:
        draft.put(("spec", "provisioning", "karpenter", "nodeClass", "name"), options.node_class)
        draft.origins["spec", "provisioning"] = lowering.annotation_at("kaito.sh/node-class-name")
    else:
        draft.put(("spec", "provisioning"), "karpenter", at)
