"""The root waits for its workers by DNS alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import pytest
from kaigen_ringproxy.gate import missing, wait

WORKERS = ["w1", "w2"]
ADDRESSES = {"w1": {"10.0.0.1"}, "w2": {"10.0.0.2"}}
Dns = Mapping[str, set[str]]


@pytest.mark.parametrize(
    ("dns", "absent"),
    [
        ({}, WORKERS),
        (ADDRESSES, WORKERS),
        ({**ADDRESSES, "ready": {"10.0.0.2"}}, ["w1"]),
        ({"w1": {"10.0.0.1"}, "ready": {"10.0.0.1", "10.0.0.2"}}, ["w2"]),
        ({**ADDRESSES, "ready": {"10.0.0.1", "10.0.0.2", "10.0.0.9"}}, []),
    ],
)
def test_a_worker_is_ready_when_the_service_has_its_address(dns: Dns, absent: list[str]) -> None:
    assert missing(WORKERS, "ready", lambda name: dns.get(name, set())) == absent


def test_all_must_stay_ready() -> None:
    whole, half = {"10.0.0.1", "10.0.0.2"}, {"10.0.0.1"}
    looks: Iterator[set[str]] = iter([half, whole, half, *[whole] * 100])
    seen = 0

    def resolve(name: str) -> set[str]:
        nonlocal seen
        if name != "ready":
            return ADDRESSES[name]
        seen += 1
        return next(looks)

    assert asyncio.run(wait(WORKERS, "ready", settle=0.05, timeout=10, pause=0.01, resolve=resolve))
    assert seen > 4


def test_the_gate_ends_when_its_time_is_over() -> None:
    assert not asyncio.run(wait(WORKERS, "ready", settle=0, timeout=0.02, pause=0.01, resolve=lambda name: set()))
