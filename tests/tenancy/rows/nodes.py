"""Nodes, taints, priorities, devices and other pods by which a pod chooses its place."""

from __future__ import annotations

from tests.tenancy.objects import container, deployment, persistent_volume, pod
from tests.tenancy.tenants import Body


def _affinity(**requirement: object) -> Body:
    term = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}


def _preferred(**requirement: object) -> Body:
    term = {"weight": 1, "preference": {"matchFields": [requirement]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"

_ON_NODE = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu-1"]}

DENIED: dict[str, tuple[Body, str]] = {
    **{
        f"{kind} to {term}": (
            pod(affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", **body}]}}),
            what,
        )
        for kind in ("podAffinity", "podAntiAffinity")
        for term, body, what in (
            ("another namespace", {"namespaces": ["team-b"]}, "pods of namespace `team-b`"),
            ("all namespaces", {"namespaceSelector": {}}, "pods of other namespaces"),
        )
    },
    "preferred pods of another namespace": (
        pod(
            affinity={
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": {"topologyKey": "a", "namespaces": ["team-b"]}}
                    ]
                }
            }
        ),
        "pods of namespace `team-b`",
    ),
    **{
        f"devices by {field}": (
            pod(containers=[container(resources={"limits": {}, field: {"deviceclass.resource.kubernetes.io/b": "1"}})]),
            "devices by the resource `deviceclass.resource.kubernetes.io/b`",
        )
        for field in ("limits",)
    },
    "priority class": (
        deployment(priorityClassName="system-node-critical"),
        "the priority class `system-node-critical`",
    ),
    "node": (pod(nodeName="control-plane"), "a node by the field `nodeName`"),
    "label of a node": (
        pod(nodeSelector={"pool": "gpu", "kubernetes.io/hostname": "gpu-1"}),
        "nodes by the label `kubernetes.io/hostname`",
    ),
    "label of the control plane": (
        deployment(nodeSelector={_CONTROL_PLANE: ""}),
        f"nodes by the label `{_CONTROL_PLANE}`",
    ),
    "name of a node in an affinity": (
        pod(affinity=_preferred(key="metadata.name", operator="In", values=["gpu-1"])),
        "nodes by the key `metadata.name`",
    ),
    "control plane in an affinity": (
        pod(affinity=_affinity(key=_CONTROL_PLANE, operator="Exists")),
        f"nodes by the key `{_CONTROL_PLANE}`",
    ),
    "node of a volume": (
        persistent_volume({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [_ON_NODE]}]}}}),
        "nodes by the key `kubernetes.io/hostname`",
    ),
    "tolerations": (pod(tolerations=[{"operator": "Exists"}]), "the toleration of all taints"),
    "toleration of the control plane": (
        deployment(tolerations=[{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]),
        "the toleration `node-role.kubernetes.io/master`",
    ),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "pod": pod(tolerations=[{"key": "gpu", "operator": "Exists"}], nodeSelector={"pool": "gpu"}),
    "affinity": pod(affinity=_affinity(key="pool", operator="In", values=["gpu"])),
    "affinity without the control plane": pod(affinity=_affinity(key=_CONTROL_PLANE, operator="DoesNotExist")),
    "affinity in its own namespace": pod(
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "a", "namespaces": ["team-a"], "labelSelector": {}}
                ]
            }
        }
    ),
}
"""Objects that the tenant may have."""
