"""How long the first request waits: the sum of two times that are uniform."""

from __future__ import annotations

import pytest

from kaigen.sizing.cold_start import ColdStart


def noticed(polling: int, scrape: int, share: float) -> float:
    return ColdStart(polling, scrape, start=60, given=True, hold=120).noticed(share)


@pytest.mark.parametrize("intervals", [(15, 30), (30, 15), (15, 15), (15, 2), (15, 600)])
def test_half_of_all_requests_are_noticed_after_half_of_both_intervals(intervals: tuple[int, int]) -> None:
    assert noticed(*intervals, 0.5) == pytest.approx(sum(intervals) / 2)


def test_without_prometheus_only_the_scaler_decides() -> None:
    assert [noticed(15, 0, share) for share in (0.0, 0.5, 0.99)] == pytest.approx([0, 7.5, 14.85])


@pytest.mark.parametrize("intervals", [(15, 30), (15, 2), (15, 600), (15, 15)])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9, 0.99])
def test_shares_are_those_of_every_pair_of_times(intervals: tuple[int, int], share: float) -> None:
    first, second = intervals
    steps = [(number + 0.5) / 400 for number in range(400)]
    sums = sorted(first * one + second * other for one in steps for other in steps)
    assert noticed(*intervals, share) == pytest.approx(sums[int(share * len(sums))], abs=0.01 * sum(intervals))
