"""Names of fields that people know from Kubernetes, and what has their meaning in a spec."""

from __future__ import annotations

from collections.abc import Collection, Mapping

_NAMES: Mapping[str, str] = {
    "activeDeadlineSeconds": "deadline",
    "backoffLimit": "retries",
    "completions": "shards",
    "concurrencyPolicy": "concurrency",
    "failedJobsHistoryLimit": "keep",
    "maxReplicas": "max",
    "minReplicas": "min",
    "serviceAccountName": "serviceAccount",
    "startingDeadlineSeconds": "startingDeadline",
    "successfulJobsHistoryLimit": "keep",
    "ttlSecondsAfterFinished": "ttl",
    "volumeMounts": "volumes",
}
"""Fields of Jobs, CronJobs, pods and HorizontalPodAutoscalers (Kubernetes 1.36), by their names."""

_ABSENT: Mapping[str, tuple[str, str]] = {
    "restartPolicy": ("retries", "remove it: `retries` says how often a pod that failed is replaced"),
    "schedule": (
        "source",
        "let a pipeline with a schedule run `kaigen lock --upgrade`, or read the newest files with `inputs` of a Job "
        "that has a `schedule`",
    ),
}
"""Fields that a block lacks on purpose: a field that such a block has, and what to do instead."""


def usual_field(name: str, known: Collection[str]) -> str:
    """Return what to do about an unknown field that has this meaning in Kubernetes; empty if there is nothing to say.

    Args:
        name: of the field.
        known: the fields of its block.
    """
    if (meant := _NAMES.get(name)) is not None and meant in known:
        return f"write `{meant}`"
    sibling, advice = _ABSENT.get(name, ("", ""))
    return advice if sibling in known else ""
