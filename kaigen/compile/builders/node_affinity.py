"""Node affinity: GPUs whose nodes have no label in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kaigen.catalog.gpus import Gpu
from kaigen.catalog.instances import instances
from kaigen.compile.context import Context

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"

Term = Mapping[str, Any]


def gpu_node_terms(gpu: Gpu, count: int, context: Context) -> tuple[Term, ...]:
    """Return terms of which a node with a GPU fulfills one: the profile's label, or an instance type.

    On EKS, only Karpenter sets the label, and managed node groups have nodes without it. Every node has its instance
    type as a label, and Karpenter makes nodes for either term.

    Args:
        gpu: the GPU.
        count: least number of GPUs of a node.
        context: its profile is the kind of cluster.
    """
    profile = context.profile
    names = [
        each.name
        for each in instances(context.catalog, profile.cloud)
        if each.gpu.name == gpu.name and each.memory == gpu.memory and each.count >= count
    ]
    by_label = label_term(profile.labels_of(gpu.labels))
    return (by_label, _term(_INSTANCE_TYPE, names)) if names else (by_label,)


def label_term(labels: Mapping[str, str]) -> Term:
    """Return the term of nodes with all of these labels."""
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return {"matchExpressions": expressions}


def _term(key: str, values: Sequence[str]) -> Term:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def with_node_terms(affinity: Mapping[str, Any], terms: Sequence[Term]) -> dict[str, Any]:
    """Return an affinity whose nodes fulfill one of these terms, and what the affinity requires already."""
    if not terms:
        return dict(affinity)
    nodes = affinity.get("nodeAffinity") or {}
    given: Sequence[Term] = (nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ({},)
    both = [_and(one, other) for one in given for other in terms]
    return {**affinity, "nodeAffinity": {**nodes, _REQUIRED: {"nodeSelectorTerms": both}}}


def _and(one: Term, other: Term) -> dict[str, Any]:
    return {**one, "matchExpressions": [*(one.get("matchExpressions") or ()), *other["matchExpressions"]]}
