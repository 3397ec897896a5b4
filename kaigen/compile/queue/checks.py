"""Contradictions in the spec of a Queue."""

from __future__ import annotations

from kaigen.compile.builders.queueing import check_level
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.compile.queue.resolution import FLAVORS, QueueResolution, find_owner, flavors_of
from kaigen.core.json_types import FieldPath
from kaigen.core.text import series
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kinds.block import document_name, set_fields
from kaigen.kubernetes.queues import Version

_NO_COHORT = "KG0476"
_CYCLE = "KG0482"
_OWN_COHORT = "KG0483"
_TOPOLOGY = "KG0478"
_PLACES_PODS: Version = (0, 14)
"""The first version that has Topology-Aware Scheduling on (source: pkg/features of sigs.k8s.io/kueue v0.19.2)."""
_HOST = "kubernetes.io/hostname"


def check_queue(resolution: QueueResolution, problems: Problems) -> None:
    """Report every problem of a Queue that its resolution did not."""
    spec = resolution.spec
    if spec.quota is None:
        for name in sorted(set_fields(spec) - {"cluster_queue"}):
            field = document_name(spec, name)
            where = "next to `clusterQueue`, which has its own quota"
            report_ignored_field(problems, field, ("spec", field), where, "leave it out, or set `quota`")
        return
    _check_cohort(resolution, problems)
    _check_flavors(resolution, problems)
    _check_topology(resolution, problems)


def _check_cohort(resolution: QueueResolution, problems: Problems) -> None:
    spec, preemption = resolution.spec, resolution.spec.preemption
    for number, entry in enumerate(spec.quota or ()):
        path: FieldPath = ("spec", "quota", number)
        units = entry.count if entry.count is not None else entry.gpus
        if entry.lend is not None and units is not None and entry.lend > units:
            message = f"`lend` is {entry.lend}, and the entry has {units}"
            problems.error(_NO_COHORT, message, (*path, "lend"), "lend at most what the queue has")
        for field, value in (("borrow", entry.borrow), ("lend", entry.lend)):
            if value is not None and spec.cohort is None:
                _needs_cohort(field, (*path, field), problems)
    needing: tuple[tuple[str, object], ...] = (
        ("fairSharing", spec.fair_sharing),
        ("flavorsOf", spec.flavors_of),
        ("parentCohort", spec.parent_cohort),
    )
    for field, given in needing:
        if given is not None and spec.cohort is None:
            _needs_cohort(field, ("spec", field), problems)
    if spec.parent_cohort is not None and spec.cohort not in (None, resolution.metadata.name):
        message = f"the Queue of the cohort `{spec.cohort}` has another name, `{resolution.metadata.name}`"
        hint = "set `parentCohort` in a Queue with the name of the cohort"
        problems.error(_OWN_COHORT, message, ("spec", "parentCohort"), hint)
    if spec.parent_cohort is not None and spec.parent_cohort == spec.cohort:
        message = f"the cohort `{spec.cohort}` cannot be in itself"
        problems.error(_CYCLE, message, ("spec", "parentCohort"), "name another cohort, or leave it out")
    if preemption is not None and preemption.reclaim_within_cohort == "Never" and preemption.borrow_within_cohort:
        message = "`borrowWithinCohort` needs a `reclaimWithinCohort` other than Never"
        at: FieldPath = ("spec", "preemption", "borrowWithinCohort")
        problems.error(_NO_COHORT, message, at, "set `reclaimWithinCohort` to `LowerPriority` or `Any`")


def _needs_cohort(field: str, path: FieldPath, problems: Problems) -> None:
    message = f"`{field}` needs a cohort, whose queues share what they have"
    problems.error(_NO_COHORT, message, path, "set `cohort`, or leave it out")


def _check_flavors(resolution: QueueResolution, problems: Problems) -> None:
    spec, context = resolution.spec, resolution.context
    if spec.flavors_of is None:
        return
    home, path = resolution.metadata.namespace or context.config.namespace, ("spec", "flavorsOf")
    owner = find_owner(spec.flavors_of, home, context)
    if owner is None or owner.spec.quota is None or owner.spec.flavors_of is not None:
        hint = did_you_mean(spec.flavors_of, context.specs.names("Queue", home))
        message = f"namespace `{home}` has no Queue `{spec.flavors_of}` with ResourceFlavors of its own"
        problems.error(FLAVORS, message, path, hint or "name a Queue with `quota` and without `flavorsOf`")
        return
    known = {each.suffix: each for each in flavors_of(owner.spec, context, Problems())}
    names = series([f"`{name}`" for name in sorted(known)], "or")
    for flavor in resolution.flavors:
        other = known.get(flavor.suffix)
        if other is None or other.labels != flavor.labels:
            message = f"the Queue `{spec.flavors_of}` has no flavor `{flavor.suffix}` with the same node labels"
            problems.error(FLAVORS, message, flavor.path, f"add it there with `count: 0`, or use {names}")
    if spec.topology is not None:
        where = "next to `flavorsOf`: the flavors are those of another Queue"
        report_ignored_field(problems, "topology", ("spec", "topology"), where, "set it there")


def _check_topology(resolution: QueueResolution, problems: Problems) -> None:
    spec, path = resolution.spec, ("spec", "topology")
    for number, level in enumerate(spec.topology or ()):
        check_level(level, resolution.context.profile, (*path, number), problems)
    levels = resolution.levels
    if not levels or spec.flavors_of is not None:
        return
    if len(set(levels)) < len(levels):
        problems.error(_TOPOLOGY, "two levels have the same node label", path, "leave one out")
    if _HOST in levels[:-1]:
        problems.error(_TOPOLOGY, "`host` must be the last level", path, "put the widest level first")
    if resolution.version < _PLACES_PODS:
        shown = ".".join(str(number) for number in resolution.version)
        message = f"Kueue {shown} does not place pods by a topology"
        problems.error(_TOPOLOGY, message, path, "leave it out, or use Kueue 0.14 or newer")
    for flavor in resolution.flavors:
        if not flavor.labels:
            message = "a flavor with a topology needs node labels"
            problems.error(_TOPOLOGY, message, flavor.path, "set `nodeLabels` of the nodes")
