"""Rules for workloads, autoscaling and disruption budgets: what starts, stops, restarts and scales."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import cast

from kaigen.catalog.engines import parse_version
from kaigen.core.json_types import Json
from kaigen.core.text import plural
from kaigen.diagnostics.problem import At
from kaigen.diff.formatting import listing, value
from kaigen.diff.model import ABSENT, Absent, FieldChange
from kaigen.diff.objects import Obj, get, get_map, get_text
from kaigen.diff.rules.case import Case, Finding, is_forced, under
from kaigen.kubernetes.kind_table import KINDS, types
from kaigen.kubernetes.manifest import Object
from kaigen.kubernetes.metadata_keys import SCALED_BY
from kaigen.kubernetes.queues import NEWEST_KUEUE, PRIORITY_LABEL, QUEUE_LABEL, has_fixed_queue, rejected_changes

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

LWS = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
ROLLING = types("rolling")
SCALED = frozenset(row.type for row in KINDS.values() if row.scalable)
SERVING = types("rolling", "serving")

_POD_WORDS = {
    "initContainers": "init containers",
    "nodeSelector": "node selector",
    "serviceAccountName": "service account",
    "securityContext": "security context",
    "terminationGracePeriodSeconds": "grace period",
    "runtimeClassName": "runtime class",
    "priorityClassName": "priority class",
    "topologySpreadConstraints": "topology spread",
}
_CONTAINER_WORDS = {
    "securityContext": "security context",
    "volumeMounts": "volume mounts",
    "livenessProbe": "liveness probe",
    "readinessProbe": "readiness probe",
    "startupProbe": "startup probe",
    "imagePullPolicy": "pull policy",
}
_STAGES = re.compile(r"--pipeline-parallel-size=(?!1\b)")
_CONTAINERS = ("containers", "initContainers")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def reasons(fields: Iterable[FieldChange]) -> str:
    """Return the changed fields as text: `image and env EPOCHS changed`; empty without any."""
    found = listing((word for change in fields if (word := _reason(change.keys))), 3)
    return f"{found} changed" if found else ""


def _reason(keys: tuple[str, ...]) -> str:
    for number, key in enumerate(keys):
        if key in _CONTAINERS and number + 2 < len(keys):
            return _container_reason(keys[number + 2 :])
    if keys[:1] == ("metadata",):
        return ""
    rest = _below_template(keys)
    if not rest:
        return "pod template" if keys[-1] == "template" else _plain(keys[-1])
    if rest[0] == "metadata":
        return f"pod {rest[1]}" if len(rest) > 1 else "pod metadata"
    if len(rest) > 1:
        name = f" {rest[2]}" if len(rest) > 2 and isinstance(rest[2], At) else ""
        return _POD_WORDS.get(rest[1], _plain(rest[1]).removesuffix("s" if name else "")) + name
    return "pod spec"


def _below_template(keys: tuple[str, ...]) -> tuple[str, ...]:
    last = max((number for number, key in enumerate(keys) if key.lower().endswith("template")), default=None)
    return keys[last + 1 :] if last is not None else ()


def _container_reason(keys: tuple[str, ...]) -> str:
    field = keys[0]
    if field == "env" and len(keys) > 1 and isinstance(keys[1], At):
        return "order of env" if keys[1] == "order" and len(keys) == 2 else f"env {keys[1]}"
    return _CONTAINER_WORDS.get(field, _plain(field))


def _plain(key: str) -> str:
    return _WORD.sub(" ", key).lower()


def restart(case: Case) -> Iterator[Finding]:
    """The pod template changed."""
    old, new = case.pair
    field = "leaderWorkerTemplate" if new.type == LWS else "template"
    before, after = get_map(old.data, "spec", field), get_map(new.data, "spec", field)
    if new.type == LWS:
        before, after = ({k: v for k, v in side.items() if k != "size"} for side in (before, after))
    if before == after or _rejected(case):
        return
    template = [change for change in case.fields if under(change, "spec", field) and change.keys[-1] != "size"]
    why = reasons(template)
    because = f": {why}" if why else ""
    strategy = _strategy(new)
    if get(new.data, "spec", "replicas") == 0:
        yield "info", f"no pod runs (0 replicas); new pods use it{because}"
    elif get(new.data, "spec", "paused") is True:
        yield "notice", f"pods restart once the paused Deployment is resumed{because}"
    elif strategy == "OnDelete":
        yield "notice", f"pods change only when they are deleted manually (OnDelete){because}"
    elif strategy == "Recreate":
        yield "notice", f"pods restart (all at once: Recreate stops the old ones first){because}"
    elif _stops_the_only_replica(new):
        yield ("notice", f"pods restart (the only replica stops before the next one starts: an outage){because}")
    elif new.type == LWS:
        yield "notice", f"pods restart (rolling, group by group){because}"
    else:
        yield "notice", f"pods restart (rolling){because}"


def _stops_the_only_replica(obj: Obj) -> bool:
    """Whether a rollout may not start a new replica before it stops the only one."""
    if get(obj.data, "spec", "replicas") != 1:
        return False
    if obj.type == "StatefulSet.apps":
        return True
    field = ("rolloutStrategy", "rollingUpdateConfiguration") if obj.type == LWS else ("strategy", "rollingUpdate")
    return get(obj.data, "spec", *field, "maxSurge") in (0, "0%")


def _strategy(obj: Obj) -> str:
    field = "strategy" if obj.type == "Deployment.apps" else "updateStrategy"
    return get_text(obj.data, "spec", field, "type")


def scale(case: Case) -> Iterator[Finding]:
    """The number of replicas changed."""
    old, new = case.pair
    was, now = get(old.data, "spec", "replicas"), get(new.data, "spec", "replicas")
    if was == now or _rejected(case):
        return
    unit = " groups" if new.type == LWS else ""
    if isinstance(now, Absent):
        by = get_text(new.data, "metadata", "annotations", SCALED_BY)
        what = f"the cluster ({by})" if by else "the autoscaler"
        yield "info", f"replicas ({value(was)}) are no longer set here: {what} decides"
        return
    if isinstance(was, Absent):
        scaler = case.siblings.once("scalers", lambda: _scalers(case.siblings())).get((new.kind, new.name))
        if scaler is not None:
            yield "notice", f"every sync resets replicas to {value(now)}, against {scaler}"
            return
        was = 1
        if now == 1:
            return
    if now == 0:
        yield "notice", f"scales from {value(was)} to 0{unit}: it stops"
    else:
        yield "info", f"scales from {value(was)} to {value(now)}{unit}, no restart"


def _scalers(siblings: Iterable[Obj]) -> dict[tuple[str, str], Obj]:
    """Return the first autoscaler of each target, by the target's kind and name."""
    found: dict[tuple[str, str], Obj] = {}
    for obj in siblings:
        if obj.type in ("HorizontalPodAutoscaler.autoscaling", "ScaledObject.keda.sh"):
            ref = get_map(obj.data, "spec", "scaleTargetRef")
            found.setdefault((get_text(ref, "kind") or "Deployment", get_text(ref, "name")), obj)
    return found


def group_size(case: Case) -> Iterator[Finding]:
    """The group size of a LeaderWorkerSet changed, so all groups are re-created."""
    old, new = case.pair
    was, now = (get(side.data, "spec", "leaderWorkerTemplate", "size") for side in (old, new))
    was, now = (1 if isinstance(size, Absent) else size for size in (was, now))
    if was != now:
        yield (
            "notice",
            f"group size changes from {value(was)} to {value(now)} pods: every pod is recreated, group by group",
        )


def serving_added(case: Case) -> Iterator[Finding]:
    """A workload was added."""
    count = get(case.obj.data, "spec", "replicas")
    if count == 0:
        yield "info", "is created with 0 replicas: nothing starts"
    elif isinstance(count, int) and case.obj.type in SCALED:
        size = get(case.obj.data, "spec", "leaderWorkerTemplate", "size")
        if isinstance(size, int) and size > 1:
            stages = ", with pipeline stages over the network between them" if _has_stages(case.obj) else ""
            yield "notice", f"starts {plural(count, 'group')} of {size} pods that work as one{stages}"
        else:
            yield "info", f"starts {plural(count, 'group' if case.obj.type == LWS else 'pod')}"
    else:
        yield "info", "starts"


def _has_stages(obj: Obj) -> bool:
    """Whether the leader of a group splits the layers of the model into pipeline stages."""
    template = get_map(obj.data, "spec", "leaderWorkerTemplate", "leaderTemplate", "spec")
    return _STAGES.search(str(template.get("containers"))) is not None


def serving_removed(case: Case) -> Iterator[Finding]:
    """A workload was removed."""
    yield "notice", "it stops: its pods are deleted"


def serving_renamed(case: Case) -> Iterator[Finding]:
    """A workload has a new name: Kubernetes cannot rename objects."""
    old, new = case.pair
    if old.name != new.name:
        yield "notice", f"{old} stops and {new} starts: no pods are reused"


def ray_service(case: Case) -> Iterator[Finding]:
    """A RayService changed: KubeRay starts a second cluster next to the first one."""
    scaling = {"replicas", "minReplicas", "maxReplicas", "scaleStrategy"}
    config = [change for change in case.fields if under(change, "spec", "rayClusterConfig")]
    if any(not scaling & set(change.keys) for change in config):
        why = reasons(config)
        yield (
            "notice",
            "a second Ray cluster starts and takes over the traffic once it is ready: both need capacity"
            f"{f': {why}' if why else ''}",
        )
    elif config:
        yield "info", "Ray workers scale, no restart"
    if any(under(change, "spec", "serveConfigV2") for change in case.fields):
        yield "notice", "Ray Serve reloads its applications in place"


def _rejected(case: Case) -> list[str]:
    """Return the changes that Kueue rejects, in words."""
    old, new = case.pair
    return rejected_changes(cast(Object, old.data), cast(Object, new.data), _kueue(case))


def _kueue(case: Case) -> tuple[int, ...]:
    """Return the version of Kueue in the clusters of the object."""
    cluster = case.trees.config(case.obj.path).cluster
    return parse_version(cluster.kueue) if cluster and cluster.kueue else NEWEST_KUEUE


def queue(case: Case) -> Iterator[Finding]:
    """The queue changed."""
    old, new = case.pair
    was, now = (side.labels.get(QUEUE_LABEL, ABSENT) for side in (old, new))
    in_place = case.status == "changed" and not is_forced(new)
    if in_place and was is not ABSENT and PRIORITY_LABEL in old.labels and PRIORITY_LABEL not in new.labels:
        yield "danger", f"will be rejected: Kueue does not let it lose its priority class; delete {new} first"
    if was == now:
        return
    if in_place:
        if has_fixed_queue(new.type, _kueue(case), leaves=now is ABSENT):
            yield "danger", f"will be rejected: Kueue does not let its queue change; delete {new} first"
        else:
            yield "danger", f"is rejected by Kueue once its pods run; then delete {new} first"
    if now is ABSENT:
        yield "notice", f"leaves Kueue's queue {value(was)}: it no longer waits for quota"
    elif was is ABSENT:
        yield "notice", f"waits in Kueue's queue {value(now)}"
    else:
        yield "notice", f"waits in Kueue's queue {value(now)} instead of {value(was)}"


def admitted(case: Case) -> Iterator[Finding]:
    """Something changed that Kueue decided on when it admitted the pods."""
    _, new = case.pair
    found = _rejected(case)
    if not found:
        return
    names = listing(found, 4)
    if is_forced(new):
        yield ("notice", f"is deleted and created again: Kueue does not let {names} change in place, and force is set")
    else:
        yield "danger", f"will be rejected: Kueue does not let {names} change in place; delete {new} first"


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
