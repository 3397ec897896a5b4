"""Rules for autoscaling and disruption budgets."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.core.json_types import Json
from kaigen.core.text import plural
from kaigen.diff.formatting import listing, value
from kaigen.diff.model import Absent
from kaigen.diff.objects import Obj, get, get_text
from kaigen.diff.rules.case import Case, Finding, under

HPA = "HorizontalPodAutoscaler.autoscaling"
SCALED_OBJECT = "ScaledObject.keda.sh"
SCALED_JOB = "ScaledJob.keda.sh"

_BOUNDS: dict[str, tuple[tuple[str, Json], tuple[str, Json]]] = {
    # The fields of the lower and upper bound, each with its default.
    HPA: (("minReplicas", 1), ("maxReplicas", None)),
    SCALED_OBJECT: (("minReplicaCount", 0), ("maxReplicaCount", 100)),
    SCALED_JOB: (("minReplicaCount", 0), ("maxReplicaCount", 100)),
}
TYPES = frozenset(_BOUNDS)


def bounds(case: Case) -> Iterator[Finding]:
    """The bounds changed."""
    old, new = case.pair
    was, now = _bounds(old), _bounds(new)
    if was == now:
        return
    yield "notice", f"scales between {now[0]} and {now[1]} instead of {was[0]} and {was[1]}"
    if now[0] == "0" and was[0] != "0":
        yield "notice", "may scale to zero: the first request after an idle period waits for a pod to start"
    if was[0] == "0" and now[0] != "0":
        yield "notice", f"no longer scales to zero: at least {now[0]} always run"


def scaler_added(case: Case) -> Iterator[Finding]:
    """An autoscaler was added."""
    low, high = _bounds(case.obj)
    what = "runs up to {1} jobs at once" if case.obj.type == SCALED_JOB else "scales {2} between {0} and {1}"
    yield "notice", what.format(low, high, _target(case.obj))


def scaler_removed(case: Case) -> Iterator[Finding]:
    """An autoscaler was removed."""
    yield "notice", f"{_target(case.obj)} is no longer scaled; it keeps its current replicas"


def _bounds(obj: Obj) -> tuple[str, str]:
    low, high = (
        value(default if isinstance(found := get(obj.data, "spec", field), Absent) else found)
        for field, default in _BOUNDS[obj.type]
    )
    return low, high


def _target(obj: Obj) -> str:
    kind = get_text(obj.data, "spec", "scaleTargetRef", "kind") or "Deployment"
    return f"{kind} {get_text(obj.data, 'spec', 'scaleTargetRef', 'name')}".strip()


def triggers(case: Case) -> Iterator[Finding]:
    """The triggers or the behavior changed."""
    names = {"metrics": "metrics", "triggers": "triggers", "behavior": "behavior", "cooldownPeriod": "cooldown"}
    changed = [name for field, name in names.items() if any(under(change, "spec", field) for change in case.fields)]
    if changed:
        yield "info", f"{listing(changed)} changed, no restart"


def disruption(case: Case) -> Iterator[Finding]:
    """A disruption budget changed."""
    old, new = case.pair
    was, now = _budget(old), _budget(new)
    if was == now:
        return
    yield "notice", f"during a node drain {now} (before: {was})"
    if get(new.data, "spec", "maxUnavailable") == 0:
        yield "notice", "no pod may be evicted: draining a node waits forever"


def _budget(obj: Obj) -> str:
    least, most = get(obj.data, "spec", "minAvailable"), get(obj.data, "spec", "maxUnavailable")
    if not isinstance(least, Absent):
        return f"at least {_pods(least)} must stay"
    return f"at most {_pods(1 if isinstance(most, Absent) else most)} may be missing"


def _pods(count: Json) -> str:
    return plural(count, "pod") if isinstance(count, int) else f"{value(count)} of the pods"
