"""Checks of the queues of a run: unknown names, pods that a queue can never hold, cohorts that share nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import convert
from msgspec.structs import replace

from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.admission import Queues, shares_nothing
from kaigen.kubernetes.manifest import identity_of
from kaigen.kubernetes.workload import Workload

if TYPE_CHECKING:
    from kaigen.core.json_types import FieldPath, JsonObject
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.pipeline.summary import AppSummary
    from kaigen.pipeline.unit import RunApp, Unit

NEVER_ADMITTED = "KG0479"
UNKNOWN_QUEUE = "KG0480"
SHARES_NOTHING = "KG0481"
COHORT_CYCLE = "KG0482"

_PLACEMENT: FieldPath = ("spec", "placement")
_NAME: FieldPath = ("metadata", "name")


def queues_of(apps: Iterable[AppSummary]) -> Queues:
    """Return the queues that apps define."""
    return Queues(pair for app in apps if app.queues is not None for pair in app.queues.objects)


def workloads_of(app: AppSummary) -> list[Workload]:
    """Return what an app puts into queues."""
    return [convert(each, Workload) for each in (app.queues.workloads if app.queues is not None else ())]


def queue_problems(apps: Sequence[RunApp]) -> Iterator[Diagnostic]:
    """Return what is wrong with the queues of apps and with what waits in them; nothing where no app defines a queue.

    Args:
        apps: every app of the run, with its file.
    """
    queues = queues_of(app for _, app in apps)
    if not queues.local:
        return
    owners = {queue.name: queue for queue in shares_nothing(queues)}
    for unit, app in apps:
        if unit is None or app.queues is None:
            continue
        for _, body in app.queues.objects:
            name = _queue_name(body)
            cohort = queues.cluster_queues[name].cohort if name in queues.cluster_queues else ""
            if queues.cohorts.is_cycle(cohort):
                names = " → ".join(queues.cohorts.above(cohort))
                message = f"the cohorts {names} are a cycle, in which Kueue admits nothing"
                yield _at(unit, app, COHORT_CYCLE, message, ("spec", "cohort"), "remove one `parentCohort` of them")
            elif name in owners:
                message = f"no other queue of the cohort `{owners[name].cohort}` has a flavor of `{name}`"
                hint = "set `flavorsOf` to the Queue of the cohort that has the flavors"
                yield _at(unit, app, SHARES_NOTHING, message, ("spec", "cohort"), hint, warning=True)
        for workload in workloads_of(app):
            yield from _workload_problems(unit, app, workload, queues)


def _queue_name(body: JsonObject) -> str:
    """Return the name of a ClusterQueue; empty for another object."""
    return identity_of(dict(body)).name if body.get("kind") == "ClusterQueue" else ""


def _workload_problems(unit: Unit, app: AppSummary, workload: Workload, queues: Queues) -> Iterator[Diagnostic]:
    here = sorted(name for namespace, name in queues.local if namespace == workload.namespace)
    if workload.queue not in here:
        message = f"namespace `{workload.namespace}` has no queue `{workload.queue}`"
        hint = did_you_mean(workload.queue, here) or "add the namespace to `namespaces` of a Queue"
        yield _at(unit, app, UNKNOWN_QUEUE, message, (*_PLACEMENT, "queue"), hint, warning=True)
    if workload.priority and queues.priorities and workload.priority not in queues.priorities:
        message = f"no Queue has the priority `{workload.priority}`"
        hint = did_you_mean(workload.priority, sorted(queues.priorities)) or "add it to `priorities` of a Queue"
        yield _at(unit, app, UNKNOWN_QUEUE, message, (*_PLACEMENT, "priority"), hint, warning=True)
    for verdict in queues.verdicts([workload]):
        if verdict.never:
            message = f"the queue `{workload.queue}` can never hold {workload.kind} {workload.name}: "
            hint = "request less, or give the queue more; `kaigen plan` shows its quota"
            yield _at(unit, app, NEVER_ADMITTED, message + "; ".join(verdict.never), (*_PLACEMENT, "queue"), hint)


def _at(
    unit: Unit, app: AppSummary, code: str, message: str, field: FieldPath, hint: str, *, warning: bool = False
) -> Diagnostic:
    """Return the problem at a field of the spec; at the name of the app if it is not one of kaigen's own kinds."""
    found = unit.diagnostic(app, code, message, field if app.position >= 0 else _NAME, hint)
    return replace(found, severity=Severity.WARNING) if warning else found
