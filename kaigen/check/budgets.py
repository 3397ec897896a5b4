"""Findings for PodDisruptionBudgets that allow no eviction, so that draining a node never ends.

Source: https://kubernetes.io/docs/tasks/run-application/configure-pdb: Kubernetes rounds both shares up, and counts
the pods that the controllers of the selected pods want.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kaigen.check import codes
from kaigen.core.text import plural
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, identity_of, mapping, type_of
from kaigen.kubernetes.requests import least_replicas
from kaigen.kubernetes.selectors import pods_of, select_pods, selector_of

_BUDGET = "PodDisruptionBudget.policy"


def budget_findings(objs: Sequence[Object]) -> Iterator[tuple[int, Problem]]:
    """Yield a warning for each budget that allows no eviction while the fewest replicas run.

    Args:
        objs: all objects of an app; budgets of pods whose number they do not say are judged by `maxUnavailable` only.

    Yields:
        The index of the budget, and the problem.
    """
    for number, obj in enumerate(objs):
        if type_of(obj) != _BUDGET:
            continue
        spec = mapping(obj.get("spec"))
        field = "minAvailable" if "minAvailable" in spec else "maxUnavailable"
        value = spec.get(field)
        pods = _fewest_pods(obj, objs)
        if value in (0, "0%") if field == "maxUnavailable" else pods is not None and _amount(value, pods) >= pods:
            among = "" if field == "maxUnavailable" or pods is None else f" of {plural(pods, 'pod')}"
            message = f"`{field}: {value}` allows no eviction{among}, so draining a node never ends"
            hint = "set `maxUnavailable: 1`, or run more replicas"
            yield number, Problem(codes.NO_EVICTION, message, ("spec", field), hint, Severity.WARNING)


def _amount(value: object, pods: int) -> int:
    """Return a number of pods; -1 for a value that is neither a number nor a share."""
    if isinstance(value, int):
        return value
    share = re.fullmatch(r"([0-9]{1,9})%", str(value))
    return -(-int(share[1]) * pods // 100) if share else -1


def _fewest_pods(budget: Object, objs: Sequence[Object]) -> int | None:
    """Return the fewest pods, but no fewer than one of each workload, that a budget counts; None if not known."""
    selector = selector_of(budget)
    if selector is None:
        return None
    namespace, total = identity_of(budget).namespace, 0
    for obj in objs:
        if not select_pods(pods_of([obj]), namespace, selector):
            continue
        if not kind_of(obj).scalable:
            return None
        spec = mapping(obj.get("spec"))
        replicas = _fewest_replicas(obj, objs)
        size = mapping(spec.get("leaderWorkerTemplate")).get("size", 1)
        if not isinstance(replicas, int) or not isinstance(size, int):
            return None
        total += max(1, replicas) * size
    return total or None


def _fewest_replicas(workload: Object, objs: Sequence[Object]) -> object:
    """Return the fewest replicas of a workload: of its scaler, or its own."""
    target = identity_of(workload)
    least = least_replicas((identity_of(obj).namespace, obj) for obj in objs)
    own = mapping(workload.get("spec")).get("replicas", 1)
    return least.get((target.namespace, target.kind, target.name), own)
