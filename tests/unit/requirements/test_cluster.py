"""A cluster that cannot be asked; `tests/cluster/test_two_syncers.py` asks a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.diagnostics.errors import SystemFailure
from kaigen.kubectl.runner import Kubectl
from kaigen.requirements.cluster import Cluster
from kaigen.requirements.model import Requirement, Requirements

FOUND = Requirements("", (Requirement("PriorityClass", "high"),), ())


def test_without_kubectl_the_check_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemFailure, match="kubectl is not installed") as raised:
        Cluster(Kubectl()).findings(FOUND)
    assert raised.value.hint == "install kubectl"
