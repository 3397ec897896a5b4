"""Checks of the times at which something starts and stops."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.schedule import Hours
from kaigen.kubernetes.hours import minutes_between


def check_hours(hours: Sequence[Hours], origin: FieldPath, problems: Problems) -> None:
    """Report hours that are none, and hours of which one stops what another one started.

    Only those of one time zone are compared, and only weeks that are all the same.

    Args:
        hours: the spec's blocks.
        origin: the spec's field of them.
        problems: collects what is wrong.
    """
    for number, each in enumerate(hours):
        at = (*origin, number)
        if each.start == each.end:
            problems.error("KG0450", "`start` and `end` are the same time", (*at, "end"), "set another `end`")
            continue
        minutes = minutes_between(each.start, each.end)
        for earlier in hours[:number]:
            other = minutes_between(earlier.start, earlier.end)
            if earlier.time_zone == each.time_zone and minutes and other and minutes & other:
                message = f"from `{each.start}` to `{each.end}` overlaps `{earlier.start}` to `{earlier.end}`"
                problems.error("KG0450", message, (*at, "start"), "join them: the first end stops the notebook")
                break
