"""Kueue: the label that puts a workload into a queue."""

from __future__ import annotations

from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.runs import run_seconds

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label with the name of the LocalQueue. https://kueue.sigs.k8s.io/docs/concepts/workload/, 2026-11-01"""

PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
"""Label with the name of the WorkloadPriorityClass. https://kueue.sigs.k8s.io/docs/concepts/workload_priority_class/"""

POD_ANNOTATIONS = "kueue.x-k8s.io/podset-"
"""Beginning of annotations that Kueue reads from pod templates, such as its requests for a topology."""


def queue_of(body: Object) -> str:
    """Return the queue that an object waits in; empty without one."""
    queue = mapping(mapping(body.get("metadata")).get("labels")).get(QUEUE_LABEL)
    return queue if isinstance(queue, str) else ""


def is_queued(body: Object) -> bool:
    """Return whether an object is a run that waits in a queue, suspended until it has quota."""
    return run_seconds(body) is not None and bool(queue_of(body))
