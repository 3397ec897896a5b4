"""What the accounts of a namespace may do in it without the consent of the platform team."""

from __future__ import annotations

from typing import NamedTuple


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
    "jobset.x-k8s.io": ("jobsets",),
    "keda.sh": ("scaledjobs", "scaledobjects"),
    "kueue.x-k8s.io": ("localqueues", "workloads"),
    "leaderworkerset.x-k8s.io": ("leaderworkersets",),
    "networking.k8s.io": ("ingresses",),
    "policy": ("poddisruptionbudgets",),
    "ray.io": ("rayclusters", "rayjobs", "rayservices"),
    "resource.k8s.io": ("resourceclaims", "resourceclaimtemplates"),
}

HARMLESS_RIGHTS: tuple[Right, ...] = (
    *(Right(group, name, _READ) for group, names in _READ_ONLY.items() for name in names),
    Right("", "pods/log", ("get",)),
    # Measurements of downloads, and other results.
    Right("", "configmaps", (*_READ, "create", "patch", "update")),
    # Volumes with a limited life: a Job creates them, the reaper deletes them.
    Right("", "persistentvolumeclaims", (*_READ, "create", "patch", "delete")),
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
