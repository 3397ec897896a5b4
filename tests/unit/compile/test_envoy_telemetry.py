"""The parts of Envoy's configuration for traces and for counts of requests."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from kaigen.compile.builders.dashboard import ENDPOINT_PANELS
from kaigen.compile.builders.envoy_telemetry import with_traces
from kaigen.compile.endpoint.envoy import canary_cluster, topology_cluster
from kaigen.compile.topology.router_config import plain_config
from kaigen.kinds.monitoring import Traces
from tests.unit.compile.specs import app, topology


def traced(endpoint: str, protocol: Any = "grpc") -> tuple[Any, Any]:
    """Return the cluster of the collector, and the configuration of the tracer."""
    config = with_traces(plain_config(keys="", hold=0), Traces(endpoint=endpoint, protocol=protocol), "chat-router")
    resources = config["static_resources"]
    (cluster,) = [each for each in resources["clusters"] if each["name"] == "traces"]
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    return cluster, manager["tracing"]["provider"]["typed_config"]


def address(cluster: Any) -> tuple[str, int]:
    (group,) = cluster["load_assignment"]["endpoints"]
    found = group["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    return found["address"], found["port_value"]


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("http://otel.monitoring:4317", ("otel.monitoring", 4317)),
        ("http://otel.monitoring", ("otel.monitoring", 80)),
        ("https://otel.example.com/v1/traces", ("otel.example.com", 443)),
    ],
)
def test_the_collector_is_at_the_address_of_the_endpoint(endpoint: str, expected: tuple[str, int]) -> None:
    assert address(traced(endpoint, "http/protobuf")[0]) == expected


def test_grpc_needs_http2_and_http_the_path() -> None:
    cluster, tracer = traced("http://otel:4317")
    assert "http2_protocol_options" in str(cluster)
    assert tracer["grpc_service"]["envoy_grpc"] == {"cluster_name": "traces"}
    assert tracer["service_name"] == "chat-router"
    cluster, tracer = traced("http://otel:4318", "http/protobuf")
    assert "http2_protocol_options" not in str(cluster)
    assert tracer["http_service"]["http_uri"]["uri"] == "http://otel:4318/v1/traces"
    uri = traced("https://otel/team/v1/traces", "http/protobuf")[1]["http_service"]["http_uri"]["uri"]
    assert uri == "https://otel/team/v1/traces"


def test_a_collector_with_tls_must_have_a_certificate_of_its_name() -> None:
    context = traced("https://otel.example.com", "http/protobuf")[0]["transport_socket"]["typed_config"]
    (name,) = context["common_tls_context"]["validation_context"]["match_typed_subject_alt_names"]
    assert (context["sni"], name["matcher"]) == ("otel.example.com", {"exact": "otel.example.com"})
    assert "transport_socket" not in traced("http://otel:4317")[0]


def test_a_router_sends_traces_only_if_the_spec_says_where() -> None:
    engine = {"model": {"folder": "/weights"}, "engineVersion": "0.32.0", "resources": {"gpus": 1}}
    for monitoring in ({}, {"traces": {"endpoint": "http://otel:4317"}}):
        made = [
            each.body
            for each in app(topology(**engine, shape={"replicas": 2}, router={}, monitoring=monitoring)).render()
        ]
        (text,) = [each["data"]["envoy.yaml"] for each in made if "envoy.yaml" in each.get("data", {})]
        names = {each["name"] for each in yaml.safe_load(text)["static_resources"]["clusters"]}
        assert ("traces" in names) == bool(monitoring)


def test_the_dashboard_of_an_endpoint_counts_the_requests_of_canaries() -> None:
    (panel,) = [each for each in ENDPOINT_PANELS if each.title == "Requests in flight"]
    (pattern,) = {*re.findall('envoy_cluster_name=~"(.*?)"', " ".join(expression for expression, _ in panel.lines))}
    assert re.fullmatch(pattern, topology_cluster("chat"))
    assert re.fullmatch(pattern, canary_cluster("chat"))
