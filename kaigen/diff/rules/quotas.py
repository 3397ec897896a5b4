"""Rules for limits that all apps of a namespace share."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diff.formatting import listing, value
from kaigen.diff.model import ABSENT
from kaigen.diff.objects import get_map
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.rules.protections import is_namespace_left
from kaigen.kubernetes.quantities import nano

QUOTA = "ResourceQuota"


def quota(case: Case) -> Iterator[Finding]:
    """A quota was raised, lowered, or removed."""
    if case.old is None:
        return
    before = get_map(case.old.data, "spec", "hard")
    if case.new is None:
        limits = listing((f"{key} {value(item)}" for key, item in before.items()), 5)
        if is_namespace_left(case):
            yield "danger", f"apps of the namespace are no longer limited: {limits}"
        else:
            yield "info", "is deleted with its namespace"
        return
    after = get_map(case.new.data, "spec", "hard")
    for key, was in before.items():
        now = after.get(key, ABSENT)
        old, new = nano(was), nano(now)
        if now is ABSENT or old is None or new is None or new > old:
            if now != was:
                yield "danger", f"apps may use more: {key} {value(now)} instead of {value(was)}"
        elif new < old:
            yield "notice", f"apps may use less: {key} {value(now)} instead of {value(was)}"
    added = [f"{key} {value(item)}" for key, item in after.items() if key not in before]
    if added:
        yield "notice", f"also limits {listing(added)}"
