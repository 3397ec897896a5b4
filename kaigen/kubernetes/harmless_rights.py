"""Rights of RBAC that reach nothing beyond what pods of a namespace reach anyway.

No right to read Secrets, to create pods or what makes pods, no wildcard, no right that gives further rights
(`escalate`, `bind`, `impersonate`), and no subresource but the log of pods. A right that is not here is not harmless.

Source: https://kubernetes.io/docs/concepts/security/rbac-good-practices/ (privilege escalation risks), 2026-11-26.
"""

from __future__ import annotations

from typing import NamedTuple

_READ = frozenset({"get", "list", "watch"})


class Rights(NamedTuple):
    """Verbs that are harmless for some resources of one API group.

    Attributes:
        group: the API group; empty for the core group.
        resources: their names in rules.
        verbs: the verbs.
    """

    group: str
    resources: tuple[str, ...]
    verbs: frozenset[str] = _READ


HARMLESS_RIGHTS = (
    # What waits, watches and reports: gates, tests of charts, the downloader.
    Rights("", ("endpoints", "events", "persistentvolumeclaims", "pods", "pods/log", "services")),
    Rights("", ("limitranges", "replicationcontrollers", "resourcequotas", "serviceaccounts")),
    # ConfigMaps have no credentials. The downloader writes its measurements to one.
    Rights("", ("configmaps",), _READ | {"create", "patch", "update"}),
    # The Job of a claim creates the claim; an existing one keeps its data.
    Rights("", ("persistentvolumeclaims",), frozenset({"create", "patch"})),
    Rights("", ("events",), frozenset({"create", "patch"})),
    Rights("events.k8s.io", ("events",), _READ | {"create", "patch"}),
    # The election of a leader.
    Rights("coordination.k8s.io", ("leases",), _READ | {"create", "patch", "update"}),
    Rights("apps", ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets")),
    Rights("autoscaling", ("horizontalpodautoscalers",)),
    Rights("batch", ("cronjobs", "jobs")),
    Rights("discovery.k8s.io", ("endpointslices",)),
    Rights("gateway.networking.k8s.io", ("gateways", "grpcroutes", "httproutes")),
    Rights("inference.networking.k8s.io", ("inferencepools",)),
    Rights("jobset.x-k8s.io", ("jobsets",)),
    Rights("keda.sh", ("scaledjobs", "scaledobjects")),
    Rights("kueue.x-k8s.io", ("localqueues", "workloads")),
    Rights("leaderworkerset.x-k8s.io", ("leaderworkersets",)),
    Rights("monitoring.coreos.com", ("podmonitors", "servicemonitors")),
    Rights("networking.k8s.io", ("ingresses", "networkpolicies")),
    Rights("policy", ("poddisruptionbudgets",)),
    Rights("ray.io", ("rayclusters", "rayservices")),
)
"""The rights; a verb of any of the rows for a resource is harmless."""

_VERBS: dict[tuple[str, str], frozenset[str]] = {}
for _row in HARMLESS_RIGHTS:
    for _resource in _row.resources:
        _VERBS[_row.group, _resource] = _VERBS.get((_row.group, _resource), frozenset()) | _row.verbs


def is_harmless_right(group: str, resource: str, verb: str) -> bool:
    """Return whether a right in one namespace is harmless.

    Args:
        group: API group, as in a rule of a Role.
        resource: resource, with its subresource after a slash.
        verb: verb.
    """
    return verb in _VERBS.get((group, resource), frozenset())
