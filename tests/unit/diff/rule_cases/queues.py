"""Quota of queues."""

from __future__ import annotations

from typing import Any

from tests.unit.diff.diff_cases import container, obj, template
from tests.unit.diff.rule_cases.objects import Case

API = "kueue.x-k8s.io/v1beta2"
LOCAL = obj("LocalQueue", "q", API, spec={"clusterQueue": "q"})
FLAVOR = obj("ResourceFlavor", "f", API)


def quota(cpu: str) -> dict[str, Any]:
    """A ClusterQueue."""
    resources = [{"name": "cpu", "nominalQuota": cpu}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": resources}]}]
    return obj("ClusterQueue", "q", API, spec={"resourceGroups": groups})


def run(cpu: str) -> dict[str, Any]:
    """A Job in the queue."""
    spec = {"template": template(container(resources={"requests": {"cpu": cpu}}))}
    return obj("Job", "j", "batch/v1", metadata={"labels": {"kueue.x-k8s.io/queue-name": "q"}}, spec=spec)


CASES: list[Case] = [
    Case(
        "queue-quota",
        "a smaller quota",
        quota("4"),
        quota("1500m"),
        [
            (
                "danger",
                "Job j no longer fits, and waits forever once it is queued: flavor f has 1500m cpu for it, "
                "and it needs 2",
            ),
            ("notice", "quota of flavor f: 4 → 1500m cpu"),
        ],
        (LOCAL, FLAVOR, run("2")),
    ),
    Case("queue-quota", "a quota that is written in another way", quota("4"), quota("4000m"), []),
    Case(
        "queue-holds",
        "a run that its queue can never hold",
        None,
        run("2"),
        [("danger", "its queue q can never hold it: flavor f has 1 cpu for it, and it needs 2")],
        (LOCAL, FLAVOR, quota("1")),
    ),
    Case(
        "queue-holds",
        "a run that fits",
        None,
        run("1"),
        [("info", "fits into the queue q: 1 pod of flavor f")],
        (LOCAL, FLAVOR, quota("1")),
    ),
    Case("queue-holds", "a run that fits as before", run("1"), run("500m"), [], (LOCAL, FLAVOR, quota("1"))),
]
