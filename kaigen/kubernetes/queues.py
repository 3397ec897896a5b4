"""Kueue: the label that puts a workload into a queue."""

from __future__ import annotations

from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.runs import run_seconds

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label with the name of the LocalQueue. https://kueue.sigs.k8s.io/docs/concepts/workload/, 2026-11-01"""


def is_queued(body: Object) -> bool:
    """Return whether an object is a run that waits in a queue, suspended until it has quota."""
    return run_seconds(body) is not None and QUEUE_LABEL in mapping(
        mapping(body.get("metadata")).get("labels")
    )
