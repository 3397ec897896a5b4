"""Scaling of a Topology."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.unit.compile.specs import Object, app, objects, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT, KEDA


def test_replicas_are_left_to_the_scaler() -> None:
    block = topology(model="many", autoscale={"min": 2, "max": 5})
    made = objects(block, CONTEXT)
    assert "replicas" not in made["Deployment"]["spec"]
    settings = {setting.path: setting.default for setting in app(block, CONTEXT).settings}
    assert (settings["autoscaling.enabled"], settings["replicas"]) == (True, 2)
    scaler = made["HorizontalPodAutoscaler"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 5)
    assert scaler["metrics"][0]["pods"] == {
        "metric": {"name": "vllm:num_requests_waiting"},
        "target": {"type": "AverageValue", "averageValue": "5"},
    }
    grouped = objects(topology(model="many", shape={"nodes": 2}, autoscale={"max": 2}), CONTEXT)
    assert "replicas" not in grouped["LeaderWorkerSet"]["spec"]
    assert grouped["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["kind"] == "LeaderWorkerSet"


@pytest.mark.parametrize(("metric", "expected"), [("running", "16"), ("cache", "800m"), ("waiting", "5")])
def test_targets_are_quantities(metric: str, expected: str) -> None:
    made = objects(topology(model="many", autoscale={"max": 5, "metric": metric}), CONTEXT)
    target = made["HorizontalPodAutoscaler"]["spec"]["metrics"][0]["pods"]["target"]
    assert target == {"type": "AverageValue", "averageValue": expected}


def test_keda_scales_to_zero_by_a_query() -> None:
    block = topology(model="many", autoscale={**KEDA, "min": 0, "query": "up", "target": 3, "idleAfter": "1h"})
    spec = objects(block, CONTEXT)["ScaledObject"]["spec"]
    assert (spec["minReplicaCount"], spec["cooldownPeriod"]) == (0, 3600)
    # The first pod, which a new workload starts with, may load its weights first.
    assert spec["initialCooldownPeriod"] > 3600
    assert spec["triggers"] == [
        {"type": "prometheus", "metadata": {"serverAddress": "http://p:9090", "query": "up", "threshold": "3"}}
    ]


def test_keda_keeps_the_number_of_replicas_without_prometheus_unless_the_spec_has_another() -> None:
    for given, fallback in (({}, None), ({"fallback": 3}, {"failureThreshold": 4, "replicas": 3})):
        spec = objects(topology(model="many", autoscale={**KEDA, **given}), CONTEXT)["ScaledObject"]["spec"]
        assert spec.get("fallback") == fallback
    for other in ({"metric": "cpu", "scaler": "keda"}, {"metric": "cpu"}, {}):
        block = topology(model="many", autoscale={"max": 2, "fallback": 1, **other})
        assert ("KG0348", "spec.autoscale.fallback") in problem_paths(block, CONTEXT)


def test_keda_uses_the_credentials_of_a_trigger_authentication() -> None:
    server = {"address": "http://p:9090", "triggerAuthentication": "login", "authModes": ["basic", "tls"]}
    made = objects(topology(model="many", autoscale={"max": 2, "prometheus": server}), CONTEXT)
    (trigger,) = made["ScaledObject"]["spec"]["triggers"]
    assert trigger["metadata"]["authModes"] == "basic,tls"
    assert trigger["authenticationRef"] == {"name": "login"}


def test_the_metrics_are_on_the_port_that_the_policy_opens() -> None:
    made = objects(topology(model="many", port=9000, monitoring={}), CONTEXT)
    (rule,) = made["NetworkPolicy"]["spec"]["ingress"]
    assert rule["ports"] == [{"port": 9000, "protocol": "TCP"}]
    (port,) = made["Deployment"]["spec"]["template"]["spec"]["containers"][0]["ports"]
    (endpoint,) = made["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert (port["name"], port["containerPort"]) == (endpoint["port"], 9000)


def test_keda_sums_the_engines_own_metric() -> None:
    spec = objects(topology(model="many", autoscale=KEDA), CONTEXT)["ScaledObject"]["spec"]
    query = spec["triggers"][0]["metadata"]["query"]
    assert query.startswith('sum(vllm:num_requests_waiting{namespace="default",pod=~"t-')
    assert "initialCooldownPeriod" not in spec


@pytest.mark.parametrize(
    ("fields", "own", "others"),
    [
        (
            {},
            ["t-66d4f5b9c8-x7k2p", "t-5c9f-x7k2p", "t-66d4f5b9c8x7k2p"],
            ["t-7b-66d4f5b9c8-x7k2p", "t-0", "t-7b-0", "t2-66d4f5b9c8-x7k2p", "t-7b-0-1"],
        ),
        (
            {"storage": {"size": "1Gi"}},
            ["t-0", "t-12"],
            ["t-66d4f5b9c8-x7k2p", "t-7-0", "t-7b-0", "t-7b-66d4f5b9c8-x7k2p"],
        ),
        ({"shape": {"nodes": 2}}, ["t-0", "t-12"], ["t-0-1", "t-7b-0", "t-7b-0-1"]),
    ],
    ids=["Deployment", "StatefulSet", "LeaderWorkerSet"],
)
def test_keda_counts_the_apps_own_serving_pods(fields: Object, own: list[str], others: list[str]) -> None:
    spec = objects(topology(model="many", autoscale=KEDA, **fields), CONTEXT)["ScaledObject"]["spec"]
    query = spec["triggers"][0]["metadata"]["query"]
    # Prometheus anchors its regular expressions.
    pattern = re.compile(query.partition('pod=~"')[2].partition('"')[0])
    assert [name for name in [*own, *others] if pattern.fullmatch(name)] == own


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        ({"shape": {"replicas": 2}}, {"maxUnavailable": 1}),
        ({"autoscale": {"max": 2}}, {"maxUnavailable": 1}),
        ({"shape": {"replicas": 4}, "disruption": {"minAvailable": 3}}, {"minAvailable": 3}),
        ({"shape": {"replicas": 4}, "disruption": {"maxUnavailable": "50%"}}, {"maxUnavailable": "50%"}),
        ({"shape": {"replicas": 4, "nodes": 3}, "disruption": {"minAvailable": 3}}, {"minAvailable": 9}),
        ({"shape": {"replicas": 4, "nodes": 3}, "disruption": {"maxUnavailable": 2}}, {"maxUnavailable": 4}),
    ],
)
def test_several_replicas_have_a_budget_and_are_spread(spec: dict[str, Any], expected: Object | None) -> None:
    made = objects(topology(model="many", **spec), CONTEXT)
    assert ("PodDisruptionBudget" in made) == (expected is not None)
    if expected is not None:
        assert expected.items() <= made["PodDisruptionBudget"]["spec"].items()
    if "Deployment" in made:
        spread = made["Deployment"]["spec"]["template"]["spec"].get("topologySpreadConstraints")
        assert bool(spread) == (expected is not None)
