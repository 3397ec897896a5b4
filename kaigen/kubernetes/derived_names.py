"""Names that controllers derive from the names of objects."""

from __future__ import annotations

from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, entries, mapping

_POD = "-xxxxx"
LABEL_MAX = 63


def longest_name(obj: Object) -> int:
    """Return how many characters the name of an object may have, so that what its controller creates is valid."""
    limit = kind_of(obj).name.max_length
    spec = mapping(obj.get("spec"))
    if spec.get("completionMode") == "Indexed":
        return min(limit, LABEL_MAX - len(f"-{_last(spec.get('completions'))}"))
    for _, replicated in entries(spec.get("replicatedJobs")):
        job = mapping(mapping(replicated.get("template")).get("spec"))
        last = _last(job.get("completions", job.get("parallelism")))
        suffix = f"-{replicated.get('name')}-{_last(replicated.get('replicas'))}-{last}{_POD}"
        limit = min(limit, LABEL_MAX - len(suffix))
    return limit


def _last(count: object) -> int:
    """Return the greatest index of a number of pods or Jobs."""
    return max(count - 1, 0) if isinstance(count, int) else 0
