"""Kueue: the label that puts an object into a queue, and what may change of an object that has it.

Source of the changes: the webhooks of sigs.k8s.io/kueue v0.16.2, v0.18.0 and v0.19.2 (`pkg/controller/jobs`,
`pkg/controller/jobframework/validation.go`, `pkg/util/pod`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kaigen.kubernetes.manifest import Object, entries, mapping, type_of
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.runs import run_seconds

QUEUE_GROUP = "kueue.x-k8s.io"
"""API group of Kueue's objects."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label with the name of the LocalQueue. https://kueue.sigs.k8s.io/docs/concepts/workload/, 2026-11-01"""

PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
"""Label with the name of the WorkloadPriorityClass. https://kueue.sigs.k8s.io/docs/concepts/workload_priority_class/"""

RUN_SECONDS_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"
"""Label with the seconds that a run may take. sigs.k8s.io/kueue v0.19.2, pkg/controller/constants"""

ELASTIC_ANNOTATION = "kueue.x-k8s.io/elastic-job"
"""Annotation of objects whose pods Kueue admits again when their number changes. sigs.k8s.io/kueue v0.19.2,
pkg/constants"""

POD_ANNOTATIONS = "kueue.x-k8s.io/podset-"
"""Beginning of annotations that Kueue reads from pod templates, such as its requests for a topology."""


def queue_of(body: Object) -> str:
    """Return the queue that an object waits in; empty without one."""
    queue = mapping(mapping(body.get("metadata")).get("labels")).get(QUEUE_LABEL)
    return queue if isinstance(queue, str) else ""


def is_queued(body: Object) -> bool:
    """Return whether an object is a run that waits in a queue, suspended until it has quota."""
    return run_seconds(body) is not None and bool(queue_of(body))


Version = tuple[int, ...]
"""A version of Kueue, such as 0.19.2."""

NEWEST_KUEUE: Version = (0, 19)
"""The version that is assumed where kaigen.yaml does not say it."""

_LEADER_WORKER_SET, _STATEFUL_SET = "LeaderWorkerSet.leaderworkerset.x-k8s.io", "StatefulSet.apps"
_FIXED_PODS = {_LEADER_WORKER_SET, _STATEFUL_SET}
"""Kinds whose pods are admitted once: what decides about their quota and their nodes cannot change."""

_POD_FIELDS = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
    "priority",
    "topologySpreadConstraints",
    "overhead",
    "resourceClaims",
)


_SERVED = {*_FIXED_PODS, "Deployment.apps"}
"""Kinds that cannot leave their queue. Runs can, as long as they are suspended."""


def has_fixed_queue(kind: str, version: Version = NEWEST_KUEUE, *, leaves: bool = False) -> bool:
    """Return whether the queue of a kind never changes. That of others changes until their pods run.

    Args:
        kind: with its group, as in `StatefulSet.apps`.
        version: of Kueue.
        leaves: whether the object has no queue any more.
    """
    return (leaves and kind in _SERVED) or (kind == _LEADER_WORKER_SET and version < (0, 18))


def rejected_changes(old: Object, new: Object, version: Version = NEWEST_KUEUE) -> list[str]:
    """Return the changes of a queued object that Kueue rejects, in words, without that of its queue.

    Args:
        old: the object before.
        new: the object now.
        version: of Kueue.
    """
    if not queue_of(new) or type_of(new) not in _FIXED_PODS:
        return []
    size = _group_size(old, new) if version >= (0, 19) else ()
    return [*_replicas(old, new), *size, *dict.fromkeys(_pod_changes(old, new, version))]


def _group_size(old: Object, new: Object) -> Iterator[str]:
    was, now = (mapping(mapping(each.get("spec")).get("leaderWorkerTemplate")).get("size", 1) for each in (old, new))
    if type_of(new) == _LEADER_WORKER_SET and was != now:
        yield "the size of a group"


def _replicas(old: Object, new: Object) -> Iterator[str]:
    was, now = (mapping(each.get("spec")).get("replicas", 1) for each in (old, new))
    if type_of(new) == _STATEFUL_SET and was != now and was and now:
        yield "replicas"


def _pod_changes(old: Object, new: Object, version: Version) -> Iterator[str]:
    before = {template.path: template.spec for template in pod_templates(old)}
    for template in pod_templates(new):
        was, now = before.get(template.path, {}), template.spec
        yield from (field for field in _POD_FIELDS if was.get(field) != now.get(field))
        if version >= (0, 19) and _pod_requests(was) != _pod_requests(now):
            yield "resource requests"
        for field in ("initContainers", "containers"):
            yield from _container_changes(field, was, now)


def _container_changes(field: str, was: Object, now: Object) -> Iterator[str]:
    before, after = ([body for _, body in entries(spec.get(field))] for spec in (was, now))
    if len(before) != len(after):
        yield field
        return
    for old, new in zip(before, after, strict=True):
        if _requests(old) != _requests(new):
            yield "resource requests"
        if old.get("ports") != new.get("ports"):
            yield "ports"


def _pod_requests(pod: Object) -> Mapping[str, object]:
    """Return the requests of a whole pod."""
    return mapping(mapping(pod.get("resources")).get("requests"))


def _requests(container: Object) -> Mapping[str, object]:
    """Return the requests of a container; a limit without a request is one."""
    resources = mapping(container.get("resources"))
    return {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
