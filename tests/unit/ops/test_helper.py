"""How long a command waits for its pod, and what it says meanwhile."""

from __future__ import annotations

import pytest

from kaigen.cluster.waits import Waiting
from kaigen.ops import helper
from kaigen.ops.helper import Patience

CPU = Waiting("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
CLASS = Waiting("ProvisioningFailed", 'storageclass.storage.k8s.io "longhorn" not found')


def test_a_reason_is_reported_once_when_it_has_lasted(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    patience = Patience(said.append)
    assert not patience.ends(CPU)
    assert said == []
    monkeypatch.setattr(helper, "SETTLE_S", 0.0)
    for found in (None, CPU, CPU, None, CPU):
        assert not patience.ends(found)
    assert said == [f"waiting: {CPU.line}"]


def test_waiting_ends_for_what_does_not_exist_but_not_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    patience = Patience(said.append)
    assert not patience.ends(CLASS)
    monkeypatch.setattr(helper, "SETTLE_S", 0.0)
    assert patience.ends(CLASS)
    assert said == []
