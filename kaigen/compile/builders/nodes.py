"""Nodes that Karpenter makes for one app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.routes import gateway_duration
from kaigen.compile.context import Context
from kaigen.compile.expressions import Joined, Namespace, Release, Shortened, Tree, shorten_name
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.operation import Karpenter

NODES_LABEL = "kaigen.dev/nodes"
"""Label of nodes that belong to one app."""

CLASSES: Mapping[str, tuple[str, str]] = {
    "aks": ("karpenter.azure.com", "AKSNodeClass"),
    "eks": ("karpenter.k8s.aws", "EC2NodeClass"),
}
"""Group and kind of Karpenter's node class, by profile."""
_LABEL_MAX = 63
_ORIGIN = ("spec", "provisioning")


def nodes_value(namespace: str, name: str) -> str:
    """Return the value of the label of an app's nodes."""
    return shorten_name(f"{namespace}.{name}", _LABEL_MAX)


class NodePoolRequest(Struct, frozen=True):
    """The nodes that Karpenter makes for an app.

    Attributes:
        karpenter: the spec's block.
        class_group: API group of the node class.
        class_kind: kind of the node class.
        value: value of their label; see `nodes_value`.
        taint: their taint.
        requirements: allowed values by label.
        nodes: upper limit of their number.
        resource: extended resource whose count is limited too; empty for none.
        per_node: count of that resource on each node.
        spot: whether they are spot capacity.
        labels: further labels of the nodes.
    """

    karpenter: Karpenter
    class_group: str
    class_kind: str
    value: str
    taint: Mapping[str, str]
    requirements: Mapping[str, Sequence[str]]
    nodes: int
    resource: str
    per_node: int
    spot: bool
    labels: Mapping[str, str] = field(default_factory=dict)


def node_class(karpenter: Karpenter, context: Context) -> tuple[str, str]:
    """Return group and kind of the node class: the spec's, else the profile's.

    Raises:
        ProblemError: the profile has no node class and the spec does not name one in full.
    """
    given = karpenter.node_class
    group, kind = CLASSES.get(context.profile.name, ("", ""))
    group, kind = given.group or group, given.kind or kind
    if not group or not kind:
        raise ProblemError(
            "KG0350",
            f"profile `{context.profile.name}` has no Karpenter node class",
            _ORIGIN,
            "set `group`, `kind` and `name` in `provisioning.karpenter.nodeClass`, or choose aks or eks in kaigen.yaml",
        )
    return group, kind


def node_pool(frame: Frame, request: NodePoolRequest) -> Object:
    """Return a NodePool of the app's own; it has no namespace, so its name begins with the app's namespace."""
    karpenter = request.karpenter
    requirements: dict[str, Sequence[str]] = {
        "kubernetes.io/os": ["linux"],
        "karpenter.sh/capacity-type": ["spot"] if request.spot else ["on-demand"],
        **request.requirements,
    }
    if karpenter.zones:
        requirements["topology.kubernetes.io/zone"] = karpenter.zones
    limit = karpenter.max_nodes or request.nodes
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
                    "metadata": {"labels": {**request.labels, NODES_LABEL: request.value}},
                    "spec": {
                        "nodeClassRef": {
                            "group": request.class_group,
                            "kind": request.class_kind,
                            "name": settings.text(
                                "nodes.class",
                                karpenter.node_class.name,
                                "Name of the node class.",
                                origin=(*_ORIGIN, "karpenter", "nodeClass", "name"),
                            ),
                        },
                        "requirements": [
                            {"key": key, "operator": "In", "values": list(values)}
                            for key, values in sorted(requirements.items())
                        ],
                        "taints": [dict(request.taint)],
                        "expireAfter": _go_duration(karpenter.expire_after) or "Never",
                    },
                },
                "disruption": {
                    "consolidationPolicy": "WhenEmpty",
                    "consolidateAfter": _go_duration(karpenter.consolidate_after) or "10m",
                },
                "limits": _limits(request, limit),
            },
        },
    )


def _limits(request: NodePoolRequest, nodes: int) -> dict[str, Tree]:
    if request.resource:
        return {request.resource: str(nodes * request.per_node)}
    return {"nodes": str(nodes)}


def _go_duration(duration: str | None) -> str:
    """Return a duration in Karpenter's format, without days."""
    return gateway_duration(duration) if duration else ""
