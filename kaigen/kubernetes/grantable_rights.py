"""What kaigen.yaml can grant the Roles of a tenant. Nothing else can be granted.

What is left out would give all other rights too: Roles, bindings, tokens and impersonation, the objects that protect a
namespace (the Namespace, quotas, NetworkPolicies), addresses of Services, admission, and subresources that bypass the
rules of pods.
"""

from __future__ import annotations

GRANTABLE_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
"""Verbs of objects. Others, such as `bind`, `escalate`, `impersonate`, `use` and `*`, are not access to an object."""

_GRANTABLE = {
    "": (
        "configmaps",
        "events",
        "persistentvolumeclaims",
        "pods",
        "pods/attach",
        "pods/eviction",
        "pods/exec",
        "pods/log",
        "pods/portforward",
        "podtemplates",
        "replicationcontrollers",
        "replicationcontrollers/scale",
        "secrets",
        "services",
    ),
    "apps": (
        "controllerrevisions",
        "daemonsets",
        "deployments",
        "deployments/scale",
        "replicasets",
        "replicasets/scale",
        "statefulsets",
        "statefulsets/scale",
    ),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("cronjobs", "jobs"),
    "coordination.k8s.io": ("leases",),
    "events.k8s.io": ("events",),
    "gateway.networking.k8s.io": ("gateways", "grpcroutes", "httproutes"),
    "inference.networking.k8s.io": ("inferencepools",),
    "networking.k8s.io": ("ingresses",),
    "policy": ("poddisruptionbudgets",),
    "resource.k8s.io": ("resourceclaims", "resourceclaimtemplates"),
}

CUSTOM_RIGHT = rf"[a-z0-9-]+(\.[a-z0-9-]+)+\.[a-z0-9-]+=({'|'.join(GRANTABLE_VERBS)})"
"""`RESOURCE.GROUP=VERB` of a custom resource, as a pattern of RE2 and Python."""

KUBERNETES_RIGHT = r"[\s\S]*\.k8s\.io=[\s\S]*"
"""The same of a group of Kubernetes, of which only the rights above can be granted."""


def right_name(group: str, resource: str) -> str:
    """Return the name of a resource in entries: `RESOURCE`, or `RESOURCE.GROUP`."""
    return f"{resource}.{group}" if group else resource


GRANTABLE_RIGHTS: tuple[str, ...] = tuple(
    f"{right_name(group, resource)}={verb}"
    for group, resources in _GRANTABLE.items()
    for resource in resources
    for verb in GRANTABLE_VERBS
)
"""`RESOURCE[.GROUP]=VERB` of the groups of Kubernetes."""
