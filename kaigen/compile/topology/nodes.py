"""The nodes that a Topology runs on: what those must be like that Karpenter makes for it, and where its pods may go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kaigen.catalog.gpus import Gpu, get_gpu
from kaigen.catalog.instances import instances
from kaigen.catalog.profiles import Profile
from kaigen.compile.app import Object
from kaigen.compile.builders.nodes import NODES_LABEL, Wanted, node_pool, nodes_value
from kaigen.compile.builders.pods import Granted, placement_fields
from kaigen.compile.expressions import Tree
from kaigen.compile.topology.resolution import Resolved
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.blocks import Resources

_CLOUDS = {"aks": "azure", "eks": "aws"}
_GIVEN = re.compile(
    r"(^|\.)(kubernetes\.io|k8s\.io|karpenter\.sh|karpenter\.k8s\.aws|azure\.com|google\.com|nvidia\.com)$"
)
"""Domains of labels that nodes carry by themselves."""
_SPREAD: Mapping[str, Any] = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
}


def node_pools(topology: Resolved) -> list[Object]:
    """The NodePool that makes its nodes; none where it runs on those that there are."""
    karpenter = topology.karpenter
    if karpenter is None or topology.mode == "template":
        return []
    made = topology.problems.attempt(
        lambda: node_pool(topology.frame, karpenter, _wanted(topology), topology.context), None
    )
    return [made] if made else []


def _wanted(topology: Resolved) -> Wanted:
    spec, granted, gpus = topology.spec, topology.granted, topology.gpus
    amounts = granted.requirements.get("limits", {})
    return Wanted(
        value=_nodes_value(topology),
        requirements=_node_requirements(spec.resources, granted, topology.context.profile, gpus),
        nodes=(topology.most + 1) * topology.parallel.nodes,
        resource=next((name for name in amounts if "/" in name), ""),
        per_node=gpus,
        spot=spec.placement.spot,
        labels=_own_labels(spec.placement.node_selector),
    )


def _nodes_value(topology: Resolved) -> str:
    return nodes_value(topology.namespace, topology.metadata.name)


def scheduling(topology: Resolved) -> dict[str, Tree]:
    """Fields of a pod that say where it may run.

    Raises:
        ProblemError: when the cluster can have no such place.
    """
    placement, granted = topology.spec.placement, topology.granted
    update: dict[str, Any] = {}
    if topology.karpenter is not None:
        # The nodes are told by the pool's own label; what they are like is the pool's business.
        granted = replace(
            granted,
            node_selector={NODES_LABEL: _nodes_value(topology)},
            tolerations=[
                *granted.tolerations,
                {"key": NODES_LABEL, "operator": "Exists", "effect": "NoSchedule"},
            ],
        )
        update["spot"] = False
    if not placement.topology_spread and topology.most > 1 and topology.parallel.nodes == 1:
        update["topology_spread"] = [dict(_SPREAD)]
    if update:
        placement = placement.model_copy(update=update)
    return placement_fields(topology.frame, placement, topology.context, granted)


def _node_requirements(
    resources: Resources, granted: Granted, profile: Profile, gpus: int
) -> dict[str, Sequence[str]]:
    """Values by label, of which a node has one: its instance type, or the GPU that it has.

    Args:
        resources: what the spec asks for.
        granted: what that comes to.
        profile: of the cluster.
        gpus: of each pod, and so of each node.

    Raises:
        ProblemError: when the spec leaves open which nodes there are to be.
    """
    if resources.instance_type is not None:
        return {"node.kubernetes.io/instance-type": [resources.instance_type]}
    label = profile.gpu_label
    if label in granted.node_selector and label.startswith("karpenter."):
        count = {f"{label.rpartition('-')[0]}-count": [str(gpus)]} if gpus else {}
        return {label: [granted.node_selector[label]], **count}
    gpu = get_gpu(resources.gpu_type) if resources.gpu_type else None
    cloud = _CLOUDS.get(profile.name)
    known = [
        each
        for each in (instances(cloud) if cloud and gpu else ())
        if gpu and each.gpu.name == gpu.name and each.memory == gpu.memory
    ]
    alike = [each.name for each in known if each.count == gpus]
    if not alike:
        raise ProblemError(
            "KG0350",
            "Karpenter must be told which nodes to make",
            ("spec", "provisioning"),
            _counts_hint(cloud, gpu, sorted({each.count for each in known})),
        )
    return {"node.kubernetes.io/instance-type": alike}


def _counts_hint(cloud: str | None, gpu: Gpu | None, counts: Sequence[int]) -> str:
    if gpu is None or not counts:
        return "name an `instanceType` in `resources`"
    several = " or ".join(map(str, counts))
    return f"{cloud}'s nodes with {gpu.name} have {several} of them; or name an `instanceType`"


def _own_labels(selector: Mapping[str, str]) -> dict[str, str]:
    """The labels of a selector that nobody gives to nodes but who makes them: not Kubernetes', not a cloud's."""
    return {
        key: value
        for key, value in selector.items()
        if "/" not in key or not _GIVEN.search(key.partition("/")[0])
    }
