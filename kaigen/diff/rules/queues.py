"""Rules for objects that wait in a queue of Kueue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from kaigen.diff.formatting import listing, value
from kaigen.diff.model import ABSENT
from kaigen.diff.rules.case import Case, Finding, is_forced
from kaigen.kubernetes.manifest import Object
from kaigen.kubernetes.queues import FIXED_QUEUE, QUEUE_LABEL, rejected_changes


def rejected(case: Case) -> list[str]:
    """Return the changes that Kueue rejects, in words."""
    old, new = case.pair
    return rejected_changes(cast(Object, old.data), cast(Object, new.data))


def queue(case: Case) -> Iterator[Finding]:
    """The queue changed."""
    old, new = case.pair
    was, now = (side.labels.get(QUEUE_LABEL, ABSENT) for side in (old, new))
    if was == now:
        return
    if case.status == "changed" and not is_forced(new):
        if new.type in FIXED_QUEUE:
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
    found = rejected(case)
    if not found:
        return
    names = listing(found, 4)
    if is_forced(new):
        yield ("notice", f"is deleted and created again: Kueue does not let {names} change in place, and force is set")
    else:
        yield "danger", f"will be rejected: Kueue does not let {names} change in place; delete {new} first"
