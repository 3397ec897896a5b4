"""The nodes of a Topology: which ones Karpenter makes for it, and where its pods may run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kaigen.catalog.gpus import Gpu, get_gpu
from kaigen.catalog.instances import find_instance, instances
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.nodes import CLASSES, NODES_LABEL, NodePoolRequest, node_class, nodes_value
from kaigen.compile.builders.pods import ResolvedResources, placement_fields
from kaigen.compile.context import Context
from kaigen.compile.engines.launch import Parallelism
from kaigen.compile.expressions import Tree
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import replace_fields
from kaigen.kinds.blocks import SPREAD, Resources
from kaigen.kinds.operation import Karpenter, Provisioning, ProvisioningRef
from kaigen.kinds.topology import Topology

NVIDIA = "nvidia.com"
INSTANCE_LABEL = "node.kubernetes.io/instance-type"
_KNOWN_DOMAINS = re.compile(
    r"(^|\.)(kubernetes\.io|k8s\.io|karpenter\.sh|karpenter\.k8s\.aws|azure\.com|google\.com|nvidia\.com)$"
)
"""Domains of labels that Kubernetes, a cloud or a driver sets on nodes."""


def karpenter_of(provisioning: ProvisioningRef) -> Karpenter | None:
    """Return how Karpenter makes nodes; None where the pods run on existing nodes."""
    if isinstance(provisioning, Provisioning):
        return provisioning.karpenter
    return Karpenter() if provisioning == "karpenter" else None


def _max_replicas(topology: Topology) -> int:
    spec = topology.spec
    return spec.autoscale.max if spec.autoscale else spec.shape.replicas


def _nodes_value(topology: Topology, context: Context) -> str:
    return nodes_value(topology.metadata.namespace or context.config.namespace, topology.metadata.name)


def _vendor(resources: ResolvedResources) -> str:
    """Return the domain of the GPUs' vendor; empty without GPUs."""
    if not resources.has_gpu:
        return ""
    amounts = resources.requirements.get("limits", {})
    return next((name.partition("/")[0] for name in amounts if "/" in name), NVIDIA)


def _taint(value: str, vendor: str) -> dict[str, str]:
    """Return the taint of an app's own nodes, from the value of their label and the vendor of their GPUs.

    The daemons that make GPUs usable must run on the node. NVIDIA's device plugin tolerates the key `nvidia.com/gpu`,
    and the node feature discovery that its chart installs only the value `present` (source: `tolerations` in
    values.yaml of the chart nvidia-device-plugin).
    """
    if not vendor:
        return {"key": NODES_LABEL, "value": value, "effect": "NoSchedule"}
    return {"key": f"{vendor}/gpu", "value": "present", "effect": "NoSchedule"}


def resolve_node_pool(
    topology: Topology, karpenter: Karpenter, context: Context, resources: ResolvedResources, parallelism: Parallelism
) -> NodePoolRequest:
    """Return the nodes that Karpenter makes for a Topology.

    Args:
        topology: the spec.
        karpenter: the spec's block.
        context: what it is compiled for.
        resources: resources of one pod.
        parallelism: how one replica uses nodes.

    Raises:
        ProblemError: the spec does not decide which nodes to make.
    """
    spec = topology.spec
    gpus = parallelism.gpus
    amounts = resources.requirements.get("limits", {})
    requirements = _node_requirements(spec.resources, context, gpus)
    group, kind = node_class(karpenter, context)
    value, vendor = _nodes_value(topology, context), _vendor(resources)
    return NodePoolRequest(
        karpenter=karpenter,
        class_group=group,
        class_kind=kind,
        value=value,
        taint=_taint(value, vendor),
        requirements=requirements,
        nodes=(_max_replicas(topology) + 1) * parallelism.nodes,
        resource=next((name for name in amounts if "/" in name), ""),
        per_node=gpus,
        spot=spec.placement.spot,
        labels=_node_labels(vendor, spec.placement.node_selector, spec.placement.affinity),
    )


def template_node_pool(topology: Topology, karpenter: Karpenter, context: Context) -> NodePoolRequest:
    """Return the nodes that Karpenter makes for the pod template of a Topology, with the labels that it selects.

    Args:
        topology: the spec.
        karpenter: the spec's block.
        context: what it is compiled for.

    Raises:
        ProblemError: the template does not decide which nodes to make.
    """
    selector = _selector_of(topology.spec.template)
    name = selector.get(INSTANCE_LABEL)
    if name is None:
        raise ProblemError(
            "KG0350",
            "the template does not decide which nodes Karpenter makes",
            ("spec", "provisioning"),
            f"add `{INSTANCE_LABEL}` to `nodeSelector` of the template",
        )
    instance = find_instance(name, context.catalog)
    resource = instance.gpu.resource if instance is not None else ""
    group, kind = node_class(karpenter, context)
    value, vendor = _nodes_value(topology, context), resource.partition("/")[0]
    return NodePoolRequest(
        karpenter=karpenter,
        class_group=group,
        class_kind=kind,
        value=value,
        taint=_taint(value, vendor),
        requirements={INSTANCE_LABEL: [name]},
        nodes=_max_replicas(topology) + 1,
        resource=resource,
        per_node=instance.count if instance is not None else 0,
        spot=False,
        labels=_node_labels(vendor, selector, _mapping(topology.spec.template, "spec").get("affinity")),
    )


def on_node_pool(template: Mapping[str, Any], pool: NodePoolRequest) -> dict[str, Any]:
    """Return a pod template whose pods run on the nodes of a pool only.

    Args:
        template: of the user.
        pool: the nodes.
    """
    pod = dict(template["spec"])
    tolerated = {"key": pool.taint["key"], "operator": "Exists", "effect": "NoSchedule"}
    given = pod.get("tolerations")
    own = given if isinstance(given, list) else []
    pod["nodeSelector"] = {**_selector_of(template), NODES_LABEL: pool.value}
    pod["tolerations"] = own if tolerated in own else [*own, tolerated]
    return {**template, "spec": pod}


def _selector_of(template: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the node selector of a pod template; the schema check reports values that are no texts."""
    selector = _mapping(template, "spec", "nodeSelector")
    return {key: value for key, value in selector.items() if isinstance(value, str)}


def _mapping(value: object, *keys: str) -> Mapping[str, Any]:
    """Return a mapping in a part of a pod; an empty one where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _required_labels(affinity: object) -> dict[str, str]:
    """Return the labels of which an affinity for nodes requires one value."""
    required = _mapping(affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = required.get("nodeSelectorTerms")
    # Of several terms, a node fulfills one.
    term = _mapping(terms[0]) if isinstance(terms, list) and len(terms) == 1 else {}
    given = term.get("matchExpressions")
    conditions = [_mapping(each) for each in given] if isinstance(given, list) else []
    return {
        str(each.get("key")): str(each["values"][0])
        for each in conditions
        if each.get("operator") == "In" and isinstance(each.get("values"), list) and len(each["values"]) == 1
    }


def scheduling_fields(
    topology: Topology,
    frame: Frame,
    context: Context,
    resources: ResolvedResources,
    parallelism: Parallelism,
    *,
    spread: bool = False,
) -> dict[str, Tree]:
    """Return the fields of a pod that decide where it runs.

    Args:
        topology: the spec.
        frame: names and labels of its objects.
        context: what it is compiled for.
        resources: resources of one pod.
        parallelism: how one replica uses nodes.
        spread: whether the pods of one replica would rather be on different nodes.

    Raises:
        ProblemError: the cluster cannot have such a node.
    """
    placement = topology.spec.placement
    update: dict[str, Any] = {}
    if karpenter_of(topology.spec.provisioning) is not None:
        # The pool's own label selects the nodes; the pool decides everything else about them.
        value = _nodes_value(topology, context)
        key = _taint(value, _vendor(resources))["key"]
        tolerated = {"key": key, "operator": "Exists", "effect": "NoSchedule"}
        resources = replace(
            resources,
            node_selector={NODES_LABEL: value},
            node_terms=(),
            tolerations=[each for each in resources.tolerations if each != tolerated],
        )
        update = {"spot": False, "tolerations": [tolerated, *placement.tolerations]}
    several = _max_replicas(topology) > 1 if parallelism.nodes == 1 else spread
    if not placement.topology_spread and several:
        update["topology_spread"] = [dict(SPREAD)]
    if update:
        placement = replace_fields(placement, **update)
    return placement_fields(frame, placement, context, resources)


def _node_requirements(requested: Resources, context: Context, gpus: int) -> dict[str, Sequence[str]]:
    """Return the allowed values by node label: instance types, or the GPU.

    Args:
        requested: the spec's block.
        context: its profile is the kind of cluster.
        gpus: GPUs of each node.

    Raises:
        ProblemError: the spec does not decide which nodes to make.
    """
    if requested.instance_type is not None:
        return {INSTANCE_LABEL: [requested.instance_type]}
    gpu = get_gpu(requested.gpu_type, context.catalog) if requested.gpu_type else None
    profile = context.profile
    label, labels = profile.gpu_label, profile.labels_of(gpu.labels) if gpu else {}
    if labels and label.startswith("karpenter."):
        count = {f"{label.rpartition('-')[0]}-count": str(gpus)} if gpus else {}
        return {key: [value] for key, value in (labels | count).items()}
    cloud = profile.cloud if profile.name in CLASSES else ""
    known = [
        each
        for each in (instances(context.catalog, cloud) if cloud and gpu else ())
        if gpu and each.gpu.name == gpu.name and each.memory == gpu.memory
    ]
    alike = [each.name for each in known if each.count == gpus]
    if not alike:
        raise ProblemError(
            "KG0350",
            "the spec does not decide which nodes Karpenter makes",
            ("spec", "provisioning"),
            _counts_hint(cloud, gpu, sorted({each.count for each in known})),
        )
    return {INSTANCE_LABEL: alike}


def _counts_hint(cloud: str, gpu: Gpu | None, counts: Sequence[int]) -> str:
    if gpu is None or not counts:
        return "set `resources.instanceType`"
    several = " or ".join(map(str, counts))
    return f"ask for {several} GPUs, as {cloud}'s nodes with {gpu.name} have, or set `resources.instanceType`"


def _node_labels(vendor: str, selector: Mapping[str, str], affinity: object) -> dict[str, str]:
    """Return the labels that Karpenter must set on the nodes.

    NVIDIA's device plugin runs on nodes with `nvidia.com/gpu.present`, or where node feature discovery found a GPU
    (source: `affinity` in values.yaml of the chart nvidia-device-plugin). Of a selector and of an affinity that
    allows one value, those labels are set that neither Kubernetes nor a cloud sets.
    """
    present = {f"{NVIDIA}/gpu.present": "true"} if vendor == NVIDIA else {}
    custom = {
        key: value
        for key, value in {**_required_labels(affinity), **selector}.items()
        if "/" not in key or not _KNOWN_DOMAINS.search(key.partition("/")[0])
    }
    return present | custom
