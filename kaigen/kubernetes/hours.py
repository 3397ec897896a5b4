"""Times of the week between two cron expressions, as KEDA's cron scaler and a pair of CronJobs keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from kaigen.kubernetes.manifest import Object, entries, mapping, text

MINUTES_A_WEEK = 7 * 24 * 60

_DAYS: Mapping[str, int] = {name: day for day, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_ANY = ("*", "?")


@lru_cache(maxsize=64)
def minutes_between(start: str, end: str) -> frozenset[int] | None:
    """Return the minutes of a week between two cron expressions, from Sunday 00:00 on.

    Args:
        start: when they begin.
        end: when they end.

    Returns:
        None where weeks differ, since a day of the month or a month is named, or an expression is not valid.
    """
    starts, ends = _moments(start), _moments(end)
    if not starts or not ends:
        return None
    # After a start and an end at the same minute it is between the two: KEDA compares the next ones.
    between = max(starts) > max(ends)
    found = set()
    for minute in range(MINUTES_A_WEEK):
        if minute in starts:
            between = True
        elif minute in ends:
            between = False
        if between:
            found.add(minute)
    return frozenset(found)


def mean_replicas(scaled_object: Object) -> float | None:
    """Return the replicas of a ScaledObject that follows the time alone, on average over a week; None for any other."""
    spec = mapping(scaled_object.get("spec"))
    windows = [trigger for _, trigger in entries(spec.get("triggers"))]
    if not windows or any(window.get("type") != "cron" for window in windows):
        return None
    data = [mapping(window.get("metadata")) for window in windows]
    if len({text(each.get("timezone")) for each in data}) > 1:
        return None
    least = spec.get("minReplicaCount")
    floor = least if isinstance(least, int) else 0
    most = spec.get("maxReplicaCount")
    each_minute = [floor] * MINUTES_A_WEEK
    for window in data:
        minutes = minutes_between(text(window.get("start")), text(window.get("end")))
        wanted = text(window.get("desiredReplicas"))
        if minutes is None or not wanted.isdecimal():
            return None
        replicas = min(int(wanted), most) if isinstance(most, int) else int(wanted)
        for minute in minutes:
            each_minute[minute] = max(each_minute[minute], replicas)
    return sum(each_minute) / MINUTES_A_WEEK


def _moments(expression: str) -> frozenset[int]:
    """Return the minutes of a week that a cron expression names; none where weeks differ."""
    fields = expression.lower().split()
    if len(fields) != 5 or fields[2] not in _ANY or fields[3] not in _ANY:
        return frozenset()
    try:
        minutes, hours = _values(fields[0], 59), _values(fields[1], 23)
        days = _values(fields[4], 6, _DAYS)
    except ValueError:
        return frozenset()
    return frozenset((day * 24 + hour) * 60 + minute for day in days for hour in hours for minute in minutes)


def _values(field: str, most: int, words: Mapping[str, int] | None = None) -> Sequence[int]:
    """Return the numbers that a field of a cron expression names (source: robfig/cron v3, `getRange`)."""
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = ("0", "-", str(most)) if span in _ANY else span.partition("-")
        begin = _number(first, words)
        end = _number(last, words) if dash else most if slash else begin
        if not 0 <= begin <= end <= most:
            raise ValueError(part)
        found |= set(range(begin, end + 1, int(step) if slash else 1))
    return sorted(found)


def _number(word: str, words: Mapping[str, int] | None) -> int:
    return (words or {})[word] if word in (words or {}) else int(word)
