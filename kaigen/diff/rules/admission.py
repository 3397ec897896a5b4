"""Which workloads Kueue admits, and how a change of a queue changes that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.trees import Side, Trees, place_of
from kaigen.kubernetes.admission import ClusterQueue, Queues, Verdict
from kaigen.kubernetes.manifest import Object
from kaigen.kubernetes.requests import readable
from kaigen.kubernetes.workloads import POD_TYPES, QUEUED_TYPES, workloads_of

_QUEUE = "ClusterQueue"
CLUSTER_QUEUES = frozenset({"ClusterQueue.kueue.x-k8s.io", "Cohort.kueue.x-k8s.io"})
"""Kinds that the rule about queues applies to."""

QUEUED = QUEUED_TYPES
"""Kinds that the rule about what waits applies to."""

_KINDS = (_QUEUE, "Cohort", "LocalQueue", "ResourceFlavor", "Topology", "WorkloadPriorityClass")


def cluster_queue(case: Case) -> Iterator[Finding]:
    """A ClusterQueue or Cohort changed: its quota, and what queues no longer hold."""
    old, new = (_queues(case, side) for side in ("old", "new"))
    name = case.obj.name
    if case.obj.kind == "Cohort":
        for queue in new.cluster_queues.values():
            if name in {*old.cohorts.above(queue.cohort), *new.cohorts.above(queue.cohort)}:
                yield from _consequences(case, queue.name)
        return
    was, now = old.cluster_queues.get(name), new.cluster_queues.get(name)
    if was is not None and now is not None:
        for flavor in dict.fromkeys(flavor for flavor, _ in (*was.quotas, *now.quotas)):
            if texts := list(_quota_changes(was, now, flavor)):
                yield "notice", f"quota of flavor {flavor}: {', '.join(texts)}"
    yield from _consequences(case, name)


def _quota_changes(was: ClusterQueue, now: ClusterQueue, flavor: str) -> Iterator[str]:
    for resource in dict.fromkeys(name for place, name in (*was.quotas, *now.quotas) if place == flavor):
        before, after = (
            side.quotas[flavor, resource].nominal if (flavor, resource) in side.quotas else 0 for side in (was, now)
        )
        if before != after:
            yield f"{readable(resource, before)} → {readable(resource, after)} {resource}"


def _consequences(case: Case, name: str) -> Iterator[Finding]:
    """Yield what becomes of the workloads of a queue that are the same in both trees."""
    before, after = _verdicts(case, "old"), _verdicts(case, "new")
    for key, now in after.items():
        was = before.get(key)
        if now.queue != name or was is None:
            continue
        label = f"{now.workload.kind} {now.workload.name}"
        if now.never and not was.never:
            yield "danger", f"{label} no longer fits, and waits forever once it is queued: {'; '.join(now.never)}"
        elif was.never and not now.never:
            yield "notice", f"{label} fits"
        elif now.waits and not was.waits:
            yield "notice", f"{label} now waits when all of the queue are there at once"
        elif was.waits and not now.waits:
            yield "info", f"{label} no longer waits for others"


def queued(case: Case) -> Iterator[Finding]:
    """Something in a queue is new or changed: whether the queue holds it."""
    new = case.new
    if new is None:
        return
    after = _verdicts(case, "new").get((case.place, new.kind, new.name))
    old = case.old
    was = _verdicts(case, "old").get((case.place, old.kind, old.name)) if old is not None else None
    if after is None or (was is not None and (was.never, was.waits) == (after.never, after.waits)):
        return
    if after.never:
        yield "danger", f"its queue {after.queue} can never hold it: {'; '.join(after.never)}"
    elif after.waits:
        yield "notice", f"waits for quota of the queue {after.queue} when all of the queue are there at once"
    else:
        yield "info", f"fits into the queue {after.queue}: {_pods(after)}"


def _pods(verdict: Verdict) -> str:
    """Return what a queue holds of a workload, in words: its pods, their flavors and how they are placed."""
    pod_sets = verdict.workload.pod_sets
    count = sum(each.count for each in pod_sets) * verdict.workload.copies
    flavors = ", ".join(dict.fromkeys(verdict.flavors.values()))
    of = f" of flavor {flavors}" if flavors else ""
    levels = ", ".join(dict.fromkeys(each.level for each in pod_sets if each.level))
    placed = f", placed by {levels}" if levels else ""
    return f"{count} {'pod' if count == 1 else 'pods'}{of}{placed}"


def _queues(case: Case, side: Side) -> Queues:
    return case.trees.once(("queues", side, case.top), lambda: _read_queues(case.trees, side, case.top))


def _read_queues(trees: Trees, side: Side, top: str) -> Queues:
    return Queues((place_of(obj), cast(Object, obj.data)) for kind in _KINDS for obj in trees.of_kind(side, kind, top))


def _verdicts(case: Case, side: Side) -> dict[tuple[str, str, str], Verdict]:
    """Return what the queues of a tree do with all workloads of the tree, by namespace, kind and name."""
    return case.trees.once(("verdicts", side, case.top), lambda: _all_verdicts(case, side))


def _all_verdicts(case: Case, side: Side) -> dict[tuple[str, str, str], Verdict]:
    queues = _queues(case, side)
    if not queues.local:
        return {}
    catalog = case.trees.config(case.obj.path).catalog
    placed = [
        (place_of(obj), cast(Object, obj.data))
        for kind in sorted(each.partition(".")[0] for each in POD_TYPES)
        for obj in case.trees.of_kind(side, kind, case.top)
    ]
    workloads = workloads_of(placed, catalog)
    return {verdict.workload.key: verdict for verdict in queues.verdicts(workloads)}
