"""The router of a Topology: its objects, and what is reported about it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kaigen.catalog.vllm_flags import has_metric, known_versions
from kaigen.compile.topology.router_config import PICKED, PICKER_METRICS, envoy_config, picker_config
from tests.unit.compile.specs import Object, app, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT, FOLDER, KEDA


def made(**spec: Any) -> dict[tuple[str, str], Object]:
    """Return the objects of a Topology with a router, by kind and name."""
    block = topology(model="many", **{"shape": {"replicas": 2}, "router": {}, **spec})
    return {(each.body["kind"], each.body["metadata"]["name"]): each.body for each in app(block, CONTEXT).render()}


def config(found: dict[tuple[str, str], Object], name: str) -> Object:
    """Return a file of the router's ConfigMap."""
    (data,) = (body["data"] for (kind, at), body in found.items() if kind == "ConfigMap" and "-router-" in at)
    return dict(yaml.safe_load(data[name]))


def test_clients_reach_only_the_router_and_only_the_router_reaches_the_engines() -> None:
    found = made(service={"allowFrom": [{"podSelector": {}}]})
    router = found["Deployment", "t-router"]["spec"]["selector"]["matchLabels"]
    assert found["Service", "t"]["spec"]["selector"] == router
    assert found["NetworkPolicy", "t-router"]["spec"]["ingress"] == [
        {"from": [{"podSelector": {}}], "ports": [{"port": 8080, "protocol": "TCP"}]}
    ]
    assert found["NetworkPolicy", "t"]["spec"]["ingress"] == [
        {"from": [{"podSelector": {"matchLabels": router}}], "ports": [{"port": 8000, "protocol": "TCP"}]}
    ]


def test_policy_and_budget_of_the_engines_leave_out_the_pods_of_the_router() -> None:
    found = made()
    for kind, field in (("NetworkPolicy", "podSelector"), ("PodDisruptionBudget", "selector")):
        (expression,) = found[kind, "t"]["spec"][field]["matchExpressions"]
        assert (expression["operator"], expression["values"]) == ("NotIn", ["router"])


def test_picker_reads_and_changes_nothing() -> None:
    rules = made()["Role", "t-router"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert not any("leases" in rule["resources"] or "secrets" in rule["resources"] for rule in rules)


def test_keys_are_checked_before_the_picker_is_asked() -> None:
    (listener, _) = config(made(auth={"secret": "k"}), "envoy.yaml")["static_resources"]["listeners"]
    filters = listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
    assert [each["name"].rpartition(".")[2] for each in filters] == ["lua", "ext_proc", "router"]
    assert "/etc/kaigen/auth/api-key" in filters[0]["typed_config"]["default_source_code"]["inline_string"]


@pytest.mark.parametrize(("mode", "allowed"), [("open", True), ("closed", False)])
def test_failure_mode_decides_what_happens_without_the_picker(mode: str, allowed: bool) -> None:
    found = made(router={"failureMode": mode})
    text = str(config(found, "envoy.yaml"))
    assert f"'failure_mode_allow': {allowed}" in text
    assert (
        found["InferencePool", "t"]["spec"]["endpointPickerRef"]["failureMode"]
        == f"Fail{'Open' if allowed else 'Close'}"
    )


def test_answers_have_no_time_limit_and_responses_pass_the_picker_by() -> None:
    manager = envoy_config(keys="", fail_open=True, hold=0)["static_resources"]["listeners"][0]["filter_chains"][0]
    typed = manager["filters"][0]["typed_config"]
    routes = typed["route_config"]["virtual_hosts"][0]["routes"]
    assert {(each["route"]["timeout"], each["route"]["idle_timeout"]) for each in routes} == {("0s", "0s")}
    assert typed["stream_idle_timeout"] == "0s"
    assert len(routes) == 2 * len(PICKED) + 1
    mode = typed["http_filters"][0]["typed_config"]["processing_mode"]
    assert (mode["response_header_mode"], mode["response_body_mode"]) == ("SKIP", "NONE")


def test_scaling_from_zero_holds_requests_and_follows_them() -> None:
    found = made(shape={}, autoscale={**KEDA, "min": 0}, monitoring={}, probes={"startup": "10m"})
    picker = config(found, "picker.yaml")
    assert picker["featureGates"] == ["flowControl"]
    assert picker["flowControl"]["defaultRequestTTL"] == "720s"
    queries = [each["metadata"]["query"] for each in found["ScaledObject", "t"]["spec"]["triggers"]]
    assert [query.partition("{")[0] for query in queries] == [
        "sum(vllm:num_requests_waiting",
        "sum(inference_extension_flow_control_queue_size",
        "sum(vllm:num_requests_running",
    ]


def test_requests_are_not_held_where_a_replica_always_runs() -> None:
    assert "featureGates" not in config(made(), "picker.yaml")


def test_adapters_are_preferred_where_they_are_loaded() -> None:
    names = [each["type"] for each in picker_config("prefix", adapters=True, hold=0)["plugins"]]
    assert names[0] == "prefix-cache-scorer"
    assert "lora-affinity-scorer" in names
    assert "prefix-cache-scorer" not in str(picker_config("load", adapters=False, hold=0))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"shape": {"replicas": 1}}, [("KG0444", "spec.router")]),
        ({"router": {"replicas": 1}}, [("KG0444", "spec.router.replicas")]),
        ({"inferencePool": {"endpointPicker": "epp"}}, [("KG0443", "spec.inferencePool")]),
    ],
)
def test_router_without_use_is_reported(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    block = topology(model="many", **{"shape": {"replicas": 2}, "router": {}, **spec})
    assert problem_paths(block, CONTEXT) == expected


def test_other_engines_refuse_a_router() -> None:
    block = topology(model=FOLDER, engine="transformers", image="i:1", router={}, shape={"replicas": 2})
    assert ("KG0340", "spec.router") in problem_paths(block, CONTEXT)


@pytest.mark.parametrize("metric", PICKER_METRICS)
def test_every_version_of_vllm_has_the_metrics_that_the_picker_reads(metric: str) -> None:
    assert all(has_metric(metric, version) for version in known_versions())
