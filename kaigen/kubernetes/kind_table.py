"""The table of object kinds: one row for each kind of which kaigen knows more than its schema."""

from __future__ import annotations

from functools import lru_cache

from kaigen.kubernetes.manifest import Object, entries, join_type, mapping
from kaigen.kubernetes.object_kind import ObjectKind
from kaigen.kubernetes.other_kinds import OTHER_KINDS
from kaigen.kubernetes.workload_kinds import WORKLOAD_KINDS

KINDS: dict[str, ObjectKind] = {row.type: row for row in (*WORKLOAD_KINDS, *OTHER_KINDS)}
"""Every row by its type."""


def kind_of(obj: Object) -> ObjectKind:
    """Return the row of an object's kind; a row of defaults when the table has none."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if isinstance(version, str) and isinstance(kind, str):
        return find_kind(version, kind)
    return ObjectKind("")


@lru_cache(maxsize=1024)
def find_kind(api_version: str, kind: str) -> ObjectKind:
    """Return the row of a kind of any version of its group; a row of defaults when the table has none."""
    type_ = join_type(api_version.rpartition("/")[0], kind)
    return KINDS.get(type_) or ObjectKind(type_)


def types(*lifecycles: str) -> frozenset[str]:
    """Return the types of the kinds with one of these lifecycles."""
    return frozenset(row.type for row in KINDS.values() if row.lifecycle in lifecycles)


OWN_KINDS = tuple(sorted((row.group, row.kind) for row in KINDS.values() if row.emitted))
"""Group and kind of every namespaced object that kaigen's own kinds compile to.

A syncer keeps access to all of them: without access to a kind, Argo CD forgets and Flux fails to delete the last object
of that kind.
"""

DATA_KINDS = frozenset(row.kind for row in KINDS.values() if row.data)
"""Kinds whose objects contain data."""

_POD = "-xxxxx"
_LABEL_MAX = 63


def longest_name(obj: Object) -> int:
    """Return how many characters the name of an object may have, so that what its controller creates is valid."""
    limit = kind_of(obj).name.max_length
    spec = mapping(obj.get("spec"))
    if spec.get("completionMode") == "Indexed":
        return min(limit, _LABEL_MAX - len(f"-{_last(spec.get('completions'))}"))
    if obj.get("kind") == "TrainingRuntime":
        # Its JobSet has the name of its TrainJob, which is its own where kaigen made both.
        spec = mapping(mapping(spec.get("template")).get("spec"))
    for _, replicated in entries(spec.get("replicatedJobs")):
        job = mapping(mapping(replicated.get("template")).get("spec"))
        last = _last(job.get("completions", job.get("parallelism")))
        suffix = f"-{replicated.get('name')}-{_last(replicated.get('replicas'))}-{last}{_POD}"
        limit = min(limit, _LABEL_MAX - len(suffix))
    return limit


def _last(count: object) -> int:
    """Return the greatest index of a number of pods or Jobs."""
    return max(count - 1, 0) if isinstance(count, int) else 0
