"""The router of a Topology: its objects, and what is reported about it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kaigen.catalog.vllm_flags import has_metric, known_versions
from kaigen.compile.topology.router_config import PICKED, PICKER_METRICS, envoy_config, picker_config
from tests.unit.compile.specs import Object, app, problem_paths, topology
from tests.unit.compile.topologies import CONTAINER, CONTEXT, FOLDER, KEDA, TEMPLATE

PLAIN: Object = {"model": FOLDER, "engine": "transformers"}
RING: Object = {"model": {"folder": "/weights"}, "resources": {"cpu": 1, "memory": "1Gi"}}


HOURS: Object = {
    "min": 0,
    "max": 2,
    "schedule": [{"start": "0 6 * * *", "end": "0 20 * * *", "timeZone": "Etc/UTC", "replicas": 2}],
}


def made(**spec: Any) -> dict[tuple[str, str], Object]:
    """Return the objects of a Topology with a router, by kind and name."""
    fields = {"model": "many", "shape": {"replicas": 2}, "router": {}, **spec}
    block = topology(**{name: value for name, value in fields.items() if value is not None})
    return {(each.body["kind"], each.body["metadata"]["name"]): each.body for each in app(block, CONTEXT).render()}


def config(found: dict[tuple[str, str], Object], name: str) -> Object:
    """Return a file of the router's ConfigMap."""
    (data,) = (body["data"] for (kind, at), body in found.items() if kind == "ConfigMap" and "-router-" in at)
    return dict(yaml.safe_load(data[name]))


def manager(envoy: Object, number: int = 0) -> Object:
    """Return the connection manager of a listener: that of requests, or the one that asks the picker."""
    (filter_,) = envoy["static_resources"]["listeners"][number]["filter_chains"][0]["filters"]
    return dict(filter_["typed_config"])


def routes_of(envoy: Object, number: int = 0) -> list[Object]:
    """Return the routes of a listener."""
    return list(manager(envoy, number)["route_config"]["virtual_hosts"][0]["routes"])


def retry_policy(envoy: Object) -> Object:
    """Return how often Envoy sends a request again that it keeps."""
    (first, *_) = [each for each in routes_of(envoy) if "request_body_buffer_limit" in each]
    found: Object = first["route"]["retry_policy"]
    return found


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
    envoy = config(made(auth={"secret": {"name": "k"}}), "envoy.yaml")
    filters, asks = (manager(envoy, number)["http_filters"] for number in (0, 1))
    assert [each["name"].rpartition(".")[2] for each in filters] == ["lua", "buffer", "router"]
    assert [each["name"].rpartition(".")[2] for each in asks] == ["ext_proc", "router"]
    assert envoy["static_resources"]["listeners"][1]["address"]["socket_address"]["address"] == "127.0.0.1"
    assert "/etc/kaigen/auth/api-key" in filters[0]["typed_config"]["default_source_code"]["inline_string"]


def test_bodies_that_envoy_does_not_keep_go_past_the_picker() -> None:
    routes = routes_of(envoy_config(keys="", fail_open=True, hold=0))
    for long, kept in zip(routes[: 2 * len(PICKED) : 2], routes[1 : 2 * len(PICKED) : 2], strict=True):
        (longer,) = long["match"]["headers"]
        most = kept["request_body_buffer_limit"]
        assert (longer["name"], longer["range_match"]["start"]) == ("content-length", most + 1)
        assert (long["route"]["cluster"], kept["route"]["cluster"]) == ("engines", "inner")
        buffer = kept["typed_per_filter_config"]["envoy.filters.http.buffer"]
        assert buffer["buffer"]["max_request_bytes"] == most


@pytest.mark.parametrize("spec", [{}, PLAIN])
def test_envoy_refuses_requests_before_its_memory_ends(spec: Object) -> None:
    pod = made(**spec)["Deployment", "t-router"]["spec"]["template"]["spec"]
    (envoy, *pickers) = pod["containers"]
    for container, name in [(envoy, "MEMORY_LIMIT"), *((picker, "GOMEMLIMIT") for picker in pickers)]:
        read = {"name": name, "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "0"}}}
        assert read in container["env"]
    overload = yaml.safe_load(envoy["args"][envoy["args"].index("--config-yaml") + 1])["overload_manager"]
    (monitor,) = overload["resource_monitors"]
    assert monitor["typed_config"]["max_heap_size_bytes"] == "$(MEMORY_LIMIT)"
    points = {each["name"].rpartition(".")[2]: each["triggers"] for each in overload["loadshed_points"]}
    assert points["http_connection_manager_decode_headers"] == [{"name": monitor["name"], "threshold": {"value": 0.35}}]
    assert points["http1_server_abort_dispatch"] == points["http2_server_go_away_and_close_on_dispatch"]


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
    envoy = envoy_config(keys="", fail_open=True, hold=0)
    routes = [*routes_of(envoy), *routes_of(envoy, 1)]
    assert {(each["route"]["timeout"], each["route"]["idle_timeout"]) for each in routes} == {("0s", "0s")}
    assert {manager(envoy, number)["stream_idle_timeout"] for number in (0, 1)} == {"0s"}
    assert len(routes) == 2 * len(PICKED) + 1 + 3
    mode = manager(envoy, 1)["http_filters"][0]["typed_config"]["processing_mode"]
    assert (mode["response_header_mode"], mode["response_body_mode"]) == ("SKIP", "NONE")


@pytest.mark.parametrize(
    ("options", "tries", "flags", "without_picker"),
    [
        ({"fail_open": True, "hold": 0}, 3, ["UF"], True),
        ({"fail_open": True, "hold": 60}, 20, ["UF", "UH"], True),
        ({"fail_open": False, "hold": 0}, 20, ["UF"], False),
    ],
)
def test_requests_that_no_replica_got_are_sent_again(
    options: Object, tries: int, flags: list[str], without_picker: bool
) -> None:
    envoy = envoy_config(keys="", **options)
    assert retry_policy(envoy)["num_retries"] == tries
    (mapper,) = manager(envoy, 1)["local_reply_config"]["mappers"]
    assert mapper["filter"]["or_filter"]["filters"][1]["response_flag_filter"]["flags"] == flags
    (name,) = (each["header"]["key"] for each in mapper["headers_to_add"])
    assert retry_policy(envoy)["retriable_headers"] == [{"name": name, "present_match": True}]
    assert all(each["response_headers_to_remove"] == [name] for each in routes_of(envoy)[1 : 2 * len(PICKED) : 2])
    assert ("x-envoy-attempt-count" in str(routes_of(envoy, 1))) == without_picker


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


def test_keda_asks_a_router_with_picker_where_no_prometheus_is_named() -> None:
    found = made(shape={}, autoscale={"min": 0, "max": 3, "target": 8})
    (trigger,) = found["ScaledObject", "t"]["spec"]["triggers"]
    assert trigger["type"] == "metrics-api"
    assert trigger["metadata"]["url"] == "http://t-router.default.svc:19001/stats/prometheus"
    assert (trigger["metadata"]["targetValue"], trigger["metadata"]["aggregationType"]) == ("8", "sum")
    # KEDA takes the port of the URL only if the Service has it.
    assert [each["port"] for each in found["Service", "t-router"]["spec"]["ports"]] == [9002, 19001]
    (_, metrics) = found["NetworkPolicy", "t-router"]["spec"]["ingress"]
    assert {"port": 19001, "protocol": "TCP"} in metrics["ports"]
    assert config(found, "picker.yaml")["featureGates"] == ["flowControl"]
    assert [each["port"] for each in made()["Service", "t-router"]["spec"]["ports"]] == [9002]


def test_requests_outside_of_the_hours_start_a_replica() -> None:
    found = made(shape={}, autoscale={**KEDA, **HOURS}, monitoring={})
    triggers = found["ScaledObject", "t"]["spec"]["triggers"]
    assert [each["type"] for each in triggers] == ["prometheus", "prometheus", "prometheus", "cron"]
    assert "flow_control_queue_size" in triggers[1]["metadata"]["query"]
    plain = made(**PLAIN, shape={}, autoscale={**HOURS, "target": 2})
    assert [each["type"] for each in plain["ScaledObject", "t"]["spec"]["triggers"]] == ["metrics-api", "cron"]


@pytest.mark.parametrize("engine", [{}, PLAIN])
@pytest.mark.parametrize(("router", "expected"), [({}, [("KG0336", "spec.autoscale.schedule")]), ({"hold": "0s"}, [])])
def test_requests_that_wait_outside_of_the_hours_in_vain_are_reported(
    engine: Object, router: Object, expected: list[tuple[str, str]]
) -> None:
    block = topology(**{"model": "many", **engine, "router": router, "autoscale": HOURS})
    assert [each for each in problem_paths(block, CONTEXT) if each[0] != "KG0444"] == expected


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


OTHERS: list[Object] = [
    {"model": FOLDER, "engine": "transformers"},
    {"model": None, **CONTAINER},
    {"model": None, "template": TEMPLATE},
    {"model": None, "engine": "distributedLlama", "image": "i:v0.16.4", "shape": {"nodes": 2}, **RING},
]


@pytest.mark.parametrize("engine", OTHERS, ids=lambda engine: engine.get("engine", "template"))
def test_other_engines_have_a_router_without_picker_that_keda_asks(engine: Object) -> None:
    found = made(**{"shape": {}, "autoscale": {"min": 0, "max": 2}, **engine})
    kinds = {kind for kind, _ in found}
    assert not kinds & {"InferencePool", "Role", "RoleBinding", "ServiceAccount"}
    template = found["Deployment", "t-router"]["spec"]["template"]["spec"]
    assert [each["name"] for each in template["containers"]] == ["envoy"]
    assert found["Service", "t"]["spec"]["selector"]["app.kubernetes.io/component"] == "router"
    assert found["Service", "t"]["spec"]["ports"][0]["targetPort"] == "http"
    (trigger,) = found["ScaledObject", "t"]["spec"]["triggers"]
    assert trigger["type"] == "metrics-api"
    assert trigger["metadata"] == {
        "url": "http://t-router.default.svc:19001/stats/prometheus",
        "format": "prometheus",
        "valueLocation": 'envoy_http_downstream_rq_active{envoy_http_conn_manager_prefix="requests"}',
        "aggregateFromKubeServiceEndpoints": "true",
        "aggregationType": "sum",
        "targetValue": "5",
    }
    # KEDA reads this port of the pods behind the Service, and this one only.
    assert found["Service", "t-router"]["spec"]["ports"][0]["port"] == 19001
    allowed = found["NetworkPolicy", "t-router"]["spec"]["ingress"][1]
    assert allowed == {"from": [{"namespaceSelector": {}}], "ports": [{"port": 19001, "protocol": "TCP"}]}
    assert all("namespaceSelector" not in str(rule) for rule in found["NetworkPolicy", "t"]["spec"]["ingress"])


@pytest.mark.parametrize(("hold", "expected"), [("10m", []), ("645s", []), ("644s", [("KG0335", "spec.router.hold")])])
def test_requests_that_are_held_for_less_than_a_start_are_reported(hold: str, expected: list[tuple[str, str]]) -> None:
    startup = "5m" if hold == "10m" else "10m"
    scaled = {"autoscale": {**KEDA, "min": 0}, "monitoring": {}, "probes": {"startup": startup}}
    assert problem_paths(topology(model="many", **scaled, router={"hold": hold}), CONTEXT) == expected


def test_plain_router_holds_for_the_start_of_a_pod_and_two_minutes() -> None:
    found = made(**PLAIN, shape={}, autoscale={"min": 0, "max": 2}, probes={"startup": "10m"})
    policy = retry_policy(config(found, "envoy.yaml"))
    assert policy["num_retries"] == 2 * 720
    assert policy["retry_back_off"] == {"base_interval": "1s", "max_interval": "1s"}
    (arguments,) = [each["args"] for each in found["Deployment", "t-router"]["spec"]["template"]["spec"]["containers"]]
    assert "address: 127.0.0.1, port_value: 1}" in str(arguments)


def test_requests_of_a_session_stay_with_a_replica_without_a_picker() -> None:
    found = made(router={"policy": "session", "sessionHeader": "x-user"}, monitoring={})
    assert not {"InferencePool", "Role"} & {kind for kind, _ in found}
    (container,) = found["Deployment", "t-router"]["spec"]["template"]["spec"]["containers"]
    assert "lb_policy: RING_HASH" in container["args"][3]
    (route,) = routes_of(config(found, "envoy.yaml"))
    assert route["route"]["hash_policy"] == [{"header": {"header_name": "x-user"}}]


@pytest.mark.parametrize(
    ("router", "field"),
    [({"sessionHeader": "x-user"}, "sessionHeader"), ({"policy": "session", "failureMode": "open"}, "failureMode")],
)
def test_fields_that_the_policy_does_not_use_are_reported(router: Object, field: str) -> None:
    block = topology(model="many", shape={"replicas": 2}, router=router)
    assert problem_paths(block, CONTEXT) == [("KG0340", f"spec.router.{field}")]


def test_plain_router_without_a_hold_tries_twice_more_at_once() -> None:
    policy = retry_policy(config(made(**PLAIN), "envoy.yaml"))
    assert (policy["retry_on"], policy["num_retries"]) == ("connect-failure,refused-stream", 2)
    assert "retry_back_off" not in policy


def test_prometheus_has_the_requests_of_a_plain_router_where_the_spec_names_one() -> None:
    found = made(**PLAIN, shape={}, autoscale={**KEDA, "min": 0, "target": 2}, monitoring={})
    (trigger,) = found["ScaledObject", "t"]["spec"]["triggers"]
    query = trigger["metadata"]["query"]
    assert query.startswith('sum(envoy_http_downstream_rq_active{namespace="default",pod=~"t-router-[')
    assert query.endswith(',envoy_http_conn_manager_prefix="requests"})')
    assert trigger["metadata"]["threshold"] == "2"
    assert ("Service", "t-router") not in found
    (endpoint,) = found["PodMonitor", "t-router"]["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("envoy-metrics", "/stats/prometheus")


def test_a_metric_of_the_engine_is_followed_next_to_the_requests_of_a_plain_router() -> None:
    found = made(**PLAIN, shape={}, autoscale={**KEDA, "min": 0, "metric": "running"}, monitoring={})
    queries = [each["metadata"]["query"] for each in found["ScaledObject", "t"]["spec"]["triggers"]]
    assert [query.partition("{")[0] for query in queries] == [
        "sum(vllm:num_requests_running",
        "sum(envoy_http_downstream_rq_active",
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"router": {"policy": "prefix"}}, ("KG0445", "spec.router.policy")),
        ({"router": {"failureMode": "open"}}, ("KG0340", "spec.router.failureMode")),
        ({"inferencePool": {"endpointPicker": "epp"}}, ("KG0443", "spec.inferencePool")),
        ({"autoscale": {**KEDA, "min": 0}}, ("KG0357", "spec.autoscale")),
    ],
)
def test_what_a_plain_router_cannot_do_is_reported(spec: Object, expected: tuple[str, str]) -> None:
    block = topology(**{"shape": {"replicas": 2} if "autoscale" not in spec else {}, "router": {}, **PLAIN, **spec})
    assert problem_paths(block, CONTEXT) == [expected]


def test_keys_are_checked_before_a_request_is_held() -> None:
    ring = {**OTHERS[3], "shape": {}, "router": {"hold": "1m"}}
    secret = config(made(**{**ring, "auth": {"secret": {"name": "k"}}}), "envoy.yaml")
    assert "/etc/kaigen/auth/api-key" in str(secret)
    by_sum = made(**{**ring, "auth": {"sha256": ["0" * 64, "1" * 64]}})
    text = str(config(by_sum, "envoy.yaml"))
    assert f'local sums = {{["{"0" * 64}"] = true, ["{"1" * 64}"] = true}}' in text
    assert len(by_sum["Deployment", "t-router"]["spec"]["template"]["spec"]["volumes"]) == 1


@pytest.mark.parametrize("metric", PICKER_METRICS)
def test_every_version_of_vllm_has_the_metrics_that_the_picker_reads(metric: str) -> None:
    assert all(has_metric(metric, version) for version in known_versions())
