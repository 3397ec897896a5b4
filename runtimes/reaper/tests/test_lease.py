"""The election."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fake_cluster import Cluster, Object
from kaigen_reaper import lease as leases
from kaigen_reaper.lease import Lease


class _Direct:
    namespace = "models"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def now(self) -> float:
        return self.cluster.now()

    def call(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        return self.cluster.answer(method, path, body or {})


@pytest.fixture
def api(cluster: Cluster) -> Any:
    return _Direct(cluster)


def test_the_second_waits_for_the_end_of_the_lease(api: Any, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    first, second = Lease(api, "x", "first"), Lease(api, "x", "second")
    for each in (first, second):
        assert each.attempt() == ""
    assert first.is_leader
    assert not second.is_leader
    now += leases.DURATION - 1
    # It stops before another process may take over.
    assert not first.is_leader
    second.attempt()
    assert not second.is_leader
    now += 2
    second.attempt()
    assert second.is_leader
    first.attempt()
    assert not first.is_leader
    lease = cluster.get("leases", "x")
    assert lease is not None
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("second", 1)


def test_a_renewed_lease_is_not_taken(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    first, second = Lease(api, "x", "first"), Lease(api, "x", "second")
    for _ in range(10):
        first.attempt()
        second.attempt()
        now += 5
        assert first.is_leader
        assert not second.is_leader


def test_only_one_of_two_gets_a_free_lease(api: Any, cluster: Cluster) -> None:
    first, second = Lease(api, "x", "first"), Lease(api, "x", "second")
    first.attempt()
    first.release()
    assert not first.is_leader

    def interfere(method: str, path: str) -> None:
        if method == "PUT":
            cluster.before = lambda method, path: None
            first.attempt()

    cluster.before = interfere
    assert second.attempt() == ""
    assert first.is_leader
    assert not second.is_leader
