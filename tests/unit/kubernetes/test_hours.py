"""Times of the week between cron expressions."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.kubernetes.hours import MINUTES_A_WEEK, mean_replicas, minutes_between


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        ("0 8 * * MON-FRI", "0 20 * * MON-FRI", 60),
        ("0 8 * * 1-5", "30 8 ? * 1-5", 2.5),
        ("0 22 * * *", "0 6 * * *", 56),
        ("0 20 * * fri", "0 8 * * mon", 60),
        ("0 */6 * * *", "0 3/6 * * *", 84),
        ("0 8,14 * * SAT,SUN", "0 10,16 * * SAT,SUN", 8),
    ],
)
def test_hours_of_a_week_are_counted(start: str, end: str, hours: float) -> None:
    found = minutes_between(start, end)
    assert found is not None
    assert len(found) == hours * 60


def test_minutes_count_from_sunday() -> None:
    assert minutes_between("0 1 * * SUN", "2 1 * * SUN") == frozenset({60, 61})


def test_the_end_of_a_window_over_the_weekend_is_in_the_next_week() -> None:
    found = minutes_between("0 23 * * SAT", "0 1 * * SUN")
    assert found == frozenset({*range(60), *range(MINUTES_A_WEEK - 60, MINUTES_A_WEEK)})


@pytest.mark.parametrize("start", ["0 8 1 * *", "0 8 * JAN *", "0 8 * * FOO", "0 25 * * *", "0 8 * *", "0 9-8 * * *"])
def test_weeks_that_differ_have_no_hours(start: str) -> None:
    assert minutes_between(start, "0 20 * * *") is None


def scaled(*windows: dict[str, str], least: int = 0, most: int = 4, **trigger: Any) -> dict[str, Any]:
    triggers = [{"type": "cron", "metadata": window} for window in windows]
    spec = {"minReplicaCount": least, "maxReplicaCount": most, "triggers": [*triggers, *([trigger] if trigger else [])]}
    return {"kind": "ScaledObject", "spec": spec}


DAY = {"timezone": "Europe/Berlin", "start": "0 6 * * *", "end": "0 18 * * *", "desiredReplicas": "2"}
NOON = {"timezone": "Europe/Berlin", "start": "0 11 * * *", "end": "0 14 * * *", "desiredReplicas": "8"}


def test_replicas_by_the_time_have_a_mean() -> None:
    assert mean_replicas(scaled(DAY)) == 1
    assert mean_replicas(scaled(DAY, least=1)) == 1.5
    assert mean_replicas(scaled(DAY, NOON)) == 1 + 3 * 2 / 24, "the larger number, and not more than the most"


@pytest.mark.parametrize(
    "found",
    [
        scaled(DAY, type="prometheus"),
        scaled(),
        scaled(DAY, {**NOON, "timezone": "Etc/UTC"}),
        scaled({**DAY, "start": "0 6 1 * *"}),
        scaled({**DAY, "desiredReplicas": "many"}),
    ],
)
def test_replicas_that_depend_on_more_than_the_time_have_none(found: dict[str, Any]) -> None:
    assert mean_replicas(found) is None
