"""Plans of queues: what each has, and which apps it admits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaigen.kubernetes.admission import ClusterQueue, Queues, Verdict
from kaigen.kubernetes.quantities import NANO
from kaigen.kubernetes.requests import readable
from kaigen.kubernetes.workload import Workload
from kaigen.pipeline import queue_checks
from kaigen.pipeline.run import Run

_SHOWN = ("/", "cpu")
_NO_LIMIT = 10**6 * NANO
"""Cores of a quota that limits none."""
_HEAD = ("queue", "app", "pods", "requests", "flavor", "admitted")


class QueuePlan(Struct, frozen=True):
    """What the queues of a repository do with its apps.

    Attributes:
        queues: the queues.
        verdicts: what each admits, by ClusterQueue, those with a higher priority first.
    """

    queues: Queues
    verdicts: Mapping[str, Sequence[Verdict]]


def plan_queues(run: Run) -> QueuePlan | None:
    """Return what the queues of a run do when all apps are there at once; None where no app defines a queue.

    Files that are not planned count too: their apps use the same quota.
    """
    apps = run.every_summary()
    queues = queue_checks.queues_of(apps)
    if not queues.cluster_queues:
        return None
    workloads = [each for app in apps for each in queue_checks.workloads_of(app)]
    found: dict[str, list[Verdict]] = {name: [] for name in queues.cluster_queues}
    for verdict in queues.verdicts(workloads):
        found[verdict.queue].append(verdict)
    return QueuePlan(queues, found)


def queue_tables(plan: QueuePlan) -> list[list[Sequence[str]]]:
    """Return tables for the terminal: the quota of each flavor, and what is admitted."""
    quotas: list[Sequence[str]] = [("queue", "flavor", "quota", "at most, with what it borrows")]
    for queue in plan.queues.cluster_queues.values():
        quotas += [
            (queue.name, flavor, _quota(queue, flavor), _most(plan.queues, queue, flavor))
            for _, flavors in queue.groups
            for flavor in flavors
        ]
    apps: list[Sequence[str]] = [_HEAD]
    for name, verdicts in plan.verdicts.items():
        apps += [(name, *_row(verdict)) for verdict in verdicts]
    return [quotas, apps] if len(apps) > 1 else [quotas]


def reasons(plan: QueuePlan) -> list[str]:
    """Return why queues can never hold some of the apps."""
    return [
        f"{_label(verdict.workload)}: {'; '.join(verdict.never)}"
        for verdicts in plan.verdicts.values()
        for verdict in verdicts
        if verdict.never
    ]


def queue_data(plan: QueuePlan) -> list[dict[str, object]]:
    """Return the same as data."""
    return [
        {
            "queue": name,
            "cohort": plan.queues.cluster_queues[name].cohort or None,
            "quota": [
                {"flavor": flavor, "resource": resource, "nominal": readable(resource, quota.nominal)}
                for (flavor, resource), quota in plan.queues.cluster_queues[name].quotas.items()
            ],
            "workloads": [
                {
                    "namespace": verdict.workload.namespace,
                    "kind": verdict.workload.kind,
                    "name": verdict.workload.name,
                    "flavors": dict(verdict.flavors),
                    "admitted": state_of(verdict),
                    "never": list(verdict.never),
                }
                for verdict in verdicts
            ],
        }
        for name, verdicts in plan.verdicts.items()
    ]


def state_of(verdict: Verdict) -> str:
    """Return whether a workload is admitted, in a word."""
    return "never" if verdict.never else "waits" if verdict.waits else "yes"


def _label(workload: Workload) -> str:
    return f"{workload.namespace}/{workload.name}"


def _row(verdict: Verdict) -> Sequence[str]:
    workload = verdict.workload
    pods = workload.copies * sum(each.count for each in workload.pod_sets)
    amounts = ", ".join(
        f"{readable(name, workload.copies * amount)} {name}"
        for name, amount in sorted(workload.requests.items())
        if _is_shown(name)
    )
    flavors = ", ".join(dict.fromkeys(verdict.flavors.values()))
    return (_label(workload), str(pods), amounts, flavors or "-", state_of(verdict))


def _quota(queue: ClusterQueue, flavor: str) -> str:
    return ", ".join(f"{readable(name, queue.quotas[flavor, name].nominal)} {name}" for name in _limited(queue, flavor))


def _most(queues: Queues, queue: ClusterQueue, flavor: str) -> str:
    return ", ".join(
        f"{readable(name, queues.available(queue, (flavor, name)))} {name}" for name in _limited(queue, flavor)
    )


def _limited(queue: ClusterQueue, flavor: str) -> list[str]:
    """Return the resources whose quota limits anything and that decide."""
    return [
        name
        for (place, name), quota in queue.quotas.items()
        if place == flavor and _is_shown(name) and quota.nominal < _NO_LIMIT
    ]


def _is_shown(resource: str) -> bool:
    """Return whether a resource decides, as devices and CPUs do."""
    return any(part in resource for part in _SHOWN)
