"""A gate with vLLM and its own benchmark on a real node, under Argo CD and Flux."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.apps import spec
from tests.cluster.client import Object
from tests.cluster.gated import Cluster, decides, make_cluster, measured
from tests.cluster.node import Node
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import CONTEXT, model, start_hub, topology
from tests.cluster.vllm_image import vllm_image

pytestmark = pytest.mark.engine

REQUESTS, TOKENS = 8, 4


def speed(limit: str) -> Object:
    """Return the gate: the 95th percentile of the time to the first token."""
    return spec(
        "Job",
        "speed",
        workload="benchmark",
        target={"name": "assistant", "wait": "8m"},
        benchmark={
            **{"api": "completions", "requests": REQUESTS, "concurrency": 2, "promptWords": 5},
            "outputTokens": TOKENS,
        },
        require={"ttft": {"p95": limit}},
        resources={"cpu": "100m", "memory": "3Gi"},
    )


@pytest.fixture(params=["argocd", "flux"])
def cluster(node: Node, node_namespace: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Return a repository that each of the two controllers syncs."""
    node.import_image(vllm_image())
    found = make_cluster(request, request.param, node, node_namespace, tmp_path)
    yield found
    found.remove()


def test_the_benchmark_of_vllm_decides_about_a_promotion(cluster: Cluster, node: Node) -> None:
    hub = start_hub(node, base_files(context=CONTEXT))
    try:
        # The volumes of k3s, the profile of the repository, are for one node.
        specs = [model("tiny", hub, "ReadWriteOnce"), topology("assistant", "tiny")]
        cluster.team.settings["allow"] = {"servers": ["hub.test"]}
        decides(cluster, *specs, strict=speed("1ms"), loose=speed("60s"), patience=600)
    finally:
        hub.__exit__()
    found = measured(cluster)
    assert found["errors"] == 0
    assert found["ttft.p95"] > 1
    # vLLM generated as many tokens as it was asked for, and its benchmark counted them.
    assert found["throughput"] / found["requestThroughput"] == pytest.approx(TOKENS)
