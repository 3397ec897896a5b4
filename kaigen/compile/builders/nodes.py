"""Nodes that Karpenter makes for one app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.context import Context
from kaigen.compile.expressions import Joined, Namespace, Release, Shortened, Tree, shortened
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.serving import Karpenter

NODES_LABEL = "kaigen.dev/nodes"
"""Label and taint of nodes that are made for one app."""

_CLASSES: Mapping[str, tuple[str, str]] = {
    "aks": ("karpenter.azure.com", "AKSNodeClass"),
    "eks": ("karpenter.k8s.aws", "EC2NodeClass"),
}
_LABEL_MAX = 63
_ORIGIN = ("spec", "provisioning")


def nodes_value(namespace: str, name: str) -> str:
    """Value of the label and taint of an app's nodes."""
    return shortened(f"{namespace}.{name}", _LABEL_MAX)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What nodes must be like.

    Attributes:
        value: of their label and taint; see `nodes_value`.
        requirements: values by label, of which a node has one.
        nodes: most of them.
        resource: extended resource whose count is limited too; empty for none.
        per_node: how many of it a node has.
        spot: on spot capacity.
        labels: further labels that the pods ask for, and so the nodes get.
    """

    value: str
    requirements: Mapping[str, Sequence[str]]
    nodes: int
    resource: str
    per_node: int
    spot: bool
    labels: Mapping[str, str] = field(default_factory=dict)


def node_pool(frame: Frame, karpenter: Karpenter, wanted: Wanted, context: Context) -> Object:
    """A NodePool of the app's own; it belongs to the cluster, so its name begins with the namespace's.

    Raises:
        ProblemError: when the profile knows no node class and the spec names none in full.
    """
    given = karpenter.node_class
    group, kind = _CLASSES.get(context.profile.name, ("", ""))
    group, kind = given.group or group, given.kind or kind
    if not group or not kind:
        raise ProblemError(
            "KG0350",
            f"profile `{context.profile.name}` knows no node class of Karpenter's",
            _ORIGIN,
            "name its `group`, `kind` and `name` in `provisioning.karpenter.nodeClass`, or choose aks or eks in "
            "kaigen.yaml",
        )
    requirements: dict[str, Sequence[str]] = {
        "kubernetes.io/os": ["linux"],
        "karpenter.sh/capacity-type": ["spot"] if wanted.spot else ["on-demand"],
        **wanted.requirements,
    }
    if karpenter.zones:
        requirements["topology.kubernetes.io/zone"] = karpenter.zones
    limit = karpenter.max_nodes or wanted.nodes
    metadata = frame.metadata("", "nodes", name=Shortened(Joined((Namespace(), "-", Release())), _LABEL_MAX))
    del metadata["namespace"]
    return Object(
        role="nodepool",
        body={
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": metadata,
            "spec": {
                "template": {
                    "metadata": {"labels": {**wanted.labels, NODES_LABEL: wanted.value}},
                    "spec": {
                        "nodeClassRef": {
                            "group": group,
                            "kind": kind,
                            "name": settings.text(
                                "nodes.class",
                                given.name,
                                "Name of the node class.",
                                origin=(*_ORIGIN, "karpenter", "nodeClass", "name"),
                            ),
                        },
                        "requirements": [
                            {"key": key, "operator": "In", "values": list(values)}
                            for key, values in sorted(requirements.items())
                        ],
                        "taints": [{"key": NODES_LABEL, "value": wanted.value, "effect": "NoSchedule"}],
                        "expireAfter": _go_duration(karpenter.expire_after) or "Never",
                    },
                },
                "disruption": {
                    "consolidationPolicy": "WhenEmpty",
                    "consolidateAfter": _go_duration(karpenter.consolidate_after) or "10m",
                },
                "limits": _limits(wanted, limit),
            },
        },
    )


def _limits(wanted: Wanted, nodes: int) -> dict[str, Tree]:
    if wanted.resource:
        return {wanted.resource: str(nodes * wanted.per_node)}
    return {"nodes": str(nodes)}


def _go_duration(duration: str | None) -> str:
    """A duration as Karpenter reads it: without days."""
    from kaigen.compile.builders.routes import gateway_duration

    return gateway_duration(duration) if duration else ""
