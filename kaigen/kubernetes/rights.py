"""What tenants may use and do without a grant, and the rights that kaigen.yaml can grant. Nothing else can be granted.

What is left out would give all other rights too: Roles, bindings, tokens and impersonation, the objects that protect a
namespace (the Namespace, quotas, NetworkPolicies), addresses of Services, admission, and subresources that bypass the
rules of pods.
"""

from __future__ import annotations

from typing import NamedTuple

from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.schemas import is_cluster_type

USUAL_KINDS: tuple[str, ...] = tuple(
    sorted(
        {
            *(row.type for row in KINDS.values() if row.emitted and not is_cluster_type(row.kind, row.group)),
            "PersistentVolume",
            "CronJob.batch",
            "DaemonSet.apps",
            "GRPCRoute.gateway.networking.k8s.io",
            "Pod",
            "Secret",
        }
    )
)
"""The kinds that a tenant may use unless kaigen.yaml lists others.

A PersistentVolume belongs to no namespace, but the rules limit what it reaches.
"""


class Right(NamedTuple):
    """Verbs for a resource.

    Attributes:
        group: API group; empty for the core group.
        resource: plural name, with its subresource as in `pods/log`.
        verbs: of the API.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]


_READ = ("get", "list", "watch")
_READ_ONLY = {
    "": ("endpoints", "pods", "replicationcontrollers", "serviceaccounts", "services"),
    "apps": ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("cronjobs", "jobs"),
    "discovery.k8s.io": ("endpointslices",),
    "gateway.networking.k8s.io": ("gateways", "grpcroutes", "httproutes"),
    "inference.networking.k8s.io": ("inferencepools",),
    "inference.networking.x-k8s.io": ("inferencemodelrewrites", "inferenceobjectives"),
    "jobset.x-k8s.io": ("jobsets",),
    "keda.sh": ("scaledjobs", "scaledobjects"),
    "kueue.x-k8s.io": ("localqueues", "workloads"),
    "leaderworkerset.x-k8s.io": ("leaderworkersets",),
    "networking.k8s.io": ("ingresses",),
    "policy": ("poddisruptionbudgets",),
    "ray.io": ("rayclusters", "rayjobs", "rayservices"),
    "resource.k8s.io": ("resourceclaims", "resourceclaimtemplates"),
    "trainer.kubeflow.org": ("trainingruntimes", "trainjobs"),
}

HARMLESS_RIGHTS: tuple[Right, ...] = (
    *(Right(group, name, _READ) for group, names in _READ_ONLY.items() for name in names),
    Right("", "pods/log", ("get",)),
    # Measurements of downloads, and other results.
    Right("", "configmaps", (*_READ, "create", "patch", "update")),
    # Volumes with a limited life: a Job creates them, the reaper deletes them.
    Right("", "persistentvolumeclaims", (*_READ, "create", "patch", "delete")),
    # A Notebook that stops when it is idle. Its pods are those of the workload that was judged.
    Right("apps", "statefulsets/scale", ("patch",)),
    Right("", "events", (*_READ, "create", "patch", "update")),
    Right("events.k8s.io", "events", (*_READ, "create", "patch", "update")),
    Right("coordination.k8s.io", "leases", (*_READ, "create", "patch", "update", "delete")),
)
"""Rights by which an account learns no Secret, makes no pod and gets no other right.

They are what the Roles of kaigen's own kinds and of `kaigen-reaper` have, reads of workloads and of what serves them,
and writes of events and leases, which no policy of a tenant limits.
"""

_VERBS = {(right.group, right.resource): frozenset(right.verbs) for right in HARMLESS_RIGHTS}


def is_harmless_right(group: str, resource: str, verb: str) -> bool:
    """Return whether an account of a namespace may have a right there without consent."""
    return verb in _VERBS.get((group, resource), ())


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
    "trainer.kubeflow.org": ("trainingruntimes", "trainjobs"),
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
