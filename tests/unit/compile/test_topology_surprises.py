"""Warnings and notes about decisions that a reader of the spec may not expect."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.compile.specs import app, context, model, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT, FOLDER, HUB, KEDA

SLOW = {"preset": "phi-4", "resources": {"instanceType": "g6.xlarge"}}
OUTAGE = "A change stops the only replica"


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ({"autoscale": {"max": 2}}, True),
        ({"autoscale": KEDA}, True),
        ({"autoscale": {"max": 2}, "monitoring": {}}, False),
        ({"autoscale": {"max": 2, "metric": "cpu"}}, False),
        ({"autoscale": {"max": 2, "podMetric": "requests"}}, False),
        ({"autoscale": {**KEDA, "query": "up", "target": 1}}, False),
    ],
)
def test_warns_of_a_scaler_whose_metric_nothing_collects(spec: dict[str, Any], warned: bool) -> None:
    expected = [("KG0357", "spec.autoscale")] if warned else []
    assert problem_paths(topology(model="many", **spec), CONTEXT) == expected


@pytest.mark.parametrize(
    ("peer", "warned"),
    [
        ({"podSelector": {"matchLabels": {"app": "gateway"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}, False),
        ({"ipBlock": {"cidr": "10.0.0.0/8"}}, False),
        (None, False),
    ],
)
def test_warns_of_a_policy_that_keeps_prometheus_out(peer: dict[str, Any] | None, warned: bool) -> None:
    service = {"allowFrom": [peer]} if peer else {}
    expected = [("KG0363", "spec.service.allowFrom")] if warned else []
    assert problem_paths(topology(model="many", service=service, monitoring={}), CONTEXT) == expected
    assert problem_paths(topology(model="many", service=service), CONTEXT) == []


@pytest.mark.parametrize(
    ("shape", "warned"), [({}, True), ({"nodes": 2}, True), ({"nodes": 2, "pipelineParallel": 2}, False)]
)
def test_warns_of_nodes_that_the_spec_does_not_mention(shape: dict[str, Any], warned: bool) -> None:
    block = topology(**SLOW, shape=shape)
    assert problem_paths(block, context("eks")) == ([("KG0358", "spec.preset")] if warned else [])
    made = app(block, context("eks"))
    assert "over 2 nodes with 1 GPU each, and its pipeline stages talk over Ethernet." in made.summary


def test_one_node_needs_no_warning() -> None:
    block = topology(preset="phi-4", resources={"instanceType": "g6.12xlarge"})
    assert problem_paths(block, context("eks")) == []
    assert app(block, context("eks")).summary == "Serves a model with vLLM behind a Service."


@pytest.mark.parametrize(
    ("spec", "down"),
    [
        ({"resources": {"gpus": 1}}, True),
        ({"resources": {"gpus": 1}, "rollout": {"maxSurge": 1}}, False),
        ({"resources": {"gpus": 1}, "shape": {"replicas": 2}}, False),
        ({"resources": {"gpus": 0}}, False),
        ({"resources": {"gpus": 0}, "rollout": {"maxUnavailable": 1}}, True),
        ({"resources": {"gpus": 0}, "storage": {"size": "10Gi"}}, True),
    ],
)
def test_says_that_a_change_stops_the_only_replica(spec: dict[str, Any], down: bool) -> None:
    notes = app(topology(model=HUB, **spec), CONTEXT).notes
    assert any(note.text.startswith(OUTAGE) for note in notes) == down


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"storage": {"size": "27Gi"}}, "spec.storage.size"),
        ({"resources": {"ephemeralStorage": "20G"}}, "spec.resources.ephemeralStorage"),
        ({"storage": {"size": "28Gi"}}, ""),
        ({"model": FOLDER, "resources": {"ephemeralStorage": "20G"}}, ""),
    ],
)
def test_scratch_space_is_at_least_the_weights(spec: dict[str, Any], path: str) -> None:
    spec["resources"] = {"gpuType": "A100-80GB", **spec.get("resources", {})}
    expected = [("KG0320", path)] if path else []
    assert problem_paths(topology(preset="phi-4", **spec), CONTEXT) == expected


@pytest.mark.parametrize(
    ("hub", "size", "fits"),
    [
        ({}, "27Gi", False),
        ({}, "60Gi", True),
        ({"exclude": ["original/*"]}, "27Gi", False),
        ({"exclude": ["*.safetensors"]}, "1Gi", True),
        ({"include": ["*.json"]}, "1Gi", True),
        ({"repo": "unknown/model"}, "1Gi", True),
    ],
)
def test_volume_of_a_model_is_at_least_its_weights(hub: dict[str, Any], size: str, fits: bool) -> None:
    source = {"huggingFace": {"repo": "microsoft/phi-4", "revision": "0" * 40, **hub}}
    expected = [] if fits else [("KG0320", "spec.store.volume.size")]
    assert problem_paths(model(source=source, store={"volume": {"size": size}})) == expected
