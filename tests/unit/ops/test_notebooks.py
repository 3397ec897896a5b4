"""What `kaigen notebook` may change of a Notebook that Argo CD or Flux manages."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.cluster.client import Cluster
from kaigen.diagnostics.errors import CheckFailed
from kaigen.ops.notebooks import scale


class Patches:
    """A cluster that records patches."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def patch(self, kind: str, name: str, namespace: str, change: Any) -> None:
        self.made.append((kind, name, namespace, change))


def notebook(**annotations: str) -> dict[str, Any]:
    tracking = {"argocd.argoproj.io/tracking-id": "lab"}
    return {
        "metadata": {"name": "lab", "namespace": "ml", "annotations": tracking | annotations},
        "spec": {"replicas": 0},
    }


def resume(cluster: Patches, found: dict[str, Any]) -> bool:
    answer: Any = cluster
    known: Cluster = answer
    return scale(known, found, suspend=False)


def test_replicas_in_git_are_changed_there() -> None:
    cluster = Patches()
    with pytest.raises(CheckFailed, match="managed by Argo CD"):
        resume(cluster, notebook())
    assert cluster.made == []


def test_replicas_that_git_does_not_have_are_changed_in_the_cluster() -> None:
    cluster = Patches()
    assert resume(cluster, notebook(**{"kaigen.dev/scaled-by": "idle"}))
    assert cluster.made == [("apps/v1/StatefulSet", "lab", "ml", {"spec": {"replicas": 1}})]
