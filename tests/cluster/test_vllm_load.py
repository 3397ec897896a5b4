"""What `benchmarks/serving.py` measures in ten minutes, each disturbance once: only a lost replica loses requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.serving import DISTURBANCES, as_text, measure
from tests.cluster.node import Node

pytestmark = pytest.mark.engine


@pytest.mark.ran("Deployment", "Service", "PodDisruptionBudget", by="node")
def test_requests_are_lost_only_with_their_replica(node: Node, node_namespace: str, tmp_path: Path) -> None:
    result = measure(node, tmp_path, node_namespace, 0)
    print(as_text(result))
    assert [each.name for each in result.disturbances] == [name for name, _ in DISTURBANCES]
    for disturbance in result.disturbances:
        seen = {request.client for request in result.requests if disturbance.overlaps(request)}
        assert seen == {request.client for request in result.requests}, disturbance.name
    assert result.unexcused() == []
