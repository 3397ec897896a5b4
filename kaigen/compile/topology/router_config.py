"""The configuration of a router: Envoy's, and that of the endpoint picker which Envoy asks for a pod of vLLM.

Every fact about the picker is of version 1.5.0 of sigs.k8s.io/gateway-api-inference-extension, every one about Envoy of
1.40; `tests/cluster/test_router.py` runs both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kaigen.programs.files import program_text

ROUTER, ROUTER_SUFFIX = "router", "-router"
"""Component of the router's pods, and end of the names of its objects."""

PORT, GRPC, GRPC_HEALTH, METRICS, READY = 8080, 9002, 9003, 9090, 19001
"""Ports of a router's pod: requests; the picker's calls, health and metrics (pkg/epp/server/options.go); Envoy's health
and metrics."""

_ADMIN = 19000
PICKED = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses")
"""Paths whose bodies the picker reads (pkg/epp/framework/plugins/requesthandling/parsers/openai/openai.go). It answers
400 to others, such as forms with audio, so these go to the pod with the fewest requests."""

_CHOSEN = "x-gateway-destination-endpoint"
"""Header with the pod that the picker chose (pkg/epp/metadata/consts.go)."""

QUEUE_METRIC = "inference_extension_flow_control_queue_size"
"""Requests that the picker holds (pkg/epp/metrics/metrics.go)."""

OF_CLIENTS = 'envoy_http_conn_manager_prefix="requests"'
"""Label of Envoy's metrics of the requests that clients sent, and not probes."""

STATISTICS = "/stats/prometheus"

PICKER_METRICS = (
    *("vllm:num_requests_waiting", "vllm:num_requests_running"),
    *("vllm:kv_cache_usage_perc", "vllm:lora_requests_info"),
)
"""Metrics of vLLM that the picker reads (pkg/epp/framework/plugins/datalayer/extractor/metrics/factories.go)."""

_SCORERS = {
    "prefix": {"prefix-cache-scorer": 3, "queue-scorer": 1, "kv-cache-utilization-scorer": 1},
    "load": {"queue-scorer": 1, "running-requests-size-scorer": 1, "kv-cache-utilization-scorer": 1},
}
"""Weights of the plugins that score pods, by policy (pkg/epp/framework/plugins/scheduling/scorer)."""

_Config = dict[str, Any]
_EXTENSIONS = "type.googleapis.com/envoy.extensions"
_HELD_BYTES = "256Mi"
_HELD_BODY = 16 << 20
_REFUSES = 1
"""Port of the loopback interface on which nothing listens, so that every connection is refused at once."""


def picker_config(policy: str, *, adapters: bool, hold: int) -> _Config:
    """Return the EndpointPickerConfig.

    Args:
        policy: policy of the router.
        adapters: whether pods that have loaded a request's adapter are preferred.
        hold: seconds that requests wait while no pod can take them; 0 for none.
    """
    scorers = dict(_SCORERS[policy]) | ({"lora-affinity-scorer": 1} if adapters else {})
    held: _Config = {
        "featureGates": ["flowControl"],
        "flowControl": {"defaultRequestTTL": f"{hold}s", "maxBytes": _HELD_BYTES},
    }
    return {
        "apiVersion": "inference.networking.x-k8s.io/v1alpha1",
        "kind": "EndpointPickerConfig",
        **(held if hold else {}),
        "plugins": [*({"type": name} for name in scorers), {"type": "max-score-picker"}],
        "schedulingProfiles": [
            {
                "name": "default",
                "plugins": [
                    *({"pluginRef": name, "weight": weight} for name, weight in scorers.items()),
                    {"pluginRef": "max-score-picker"},
                ],
            }
        ],
    }


def envoy_config(*, keys: str, fail_open: bool, hold: int, port: int = PORT) -> _Config:
    """Return the configuration of an Envoy with a picker.

    It is without the cluster `engines`, whose host name depends on the release.

    Args:
        keys: file with the API keys; empty for none.
        fail_open: whether requests go to any pod when the picker does not answer.
        hold: seconds that the picker may hold a request.
        port: port of requests.
    """
    return {
        # Only for the probe's listener, which has the two paths that are safe to show.
        "admin": {"address": _address("127.0.0.1", _ADMIN)},
        "static_resources": {
            "listeners": [
                _listener("requests", port, _requests(keys, fail_open=fail_open, hold=hold)),
                _listener("health", READY, _health()),
            ],
            "clusters": [
                {
                    "name": "chosen",
                    "type": "ORIGINAL_DST",
                    "lb_policy": "CLUSTER_PROVIDED",
                    "connect_timeout": "5s",
                    "original_dst_lb_config": {"use_http_header": True, "http_header_name": _CHOSEN},
                    **_many_requests(),
                },
                {
                    **_static("picker", GRPC, health=GRPC_HEALTH),
                    "connect_timeout": "1s",
                    **_many_requests(),
                    # Envoy passes a request on only as long as it has sent nothing of its body to the picker. So it has
                    # to know before that the picker is down.
                    "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
                    "health_checks": [
                        {
                            **dict.fromkeys(("timeout", "interval", "no_traffic_interval"), "0.5s"),
                            "unhealthy_threshold": 1,
                            "healthy_threshold": 1,
                            "grpc_health_check": {},
                        }
                    ],
                    "typed_extension_protocol_options": {
                        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                            "@type": f"{_EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions",
                            "explicit_http_config": {"http2_protocol_options": {}},
                        }
                    },
                },
                _static("admin", _ADMIN),
            ],
        },
    }


def plain_config(*, keys: str, hold: int, sums: Sequence[str] = (), port: int = PORT) -> _Config:
    """Return the configuration of an Envoy without a picker: a request goes to the pod with the fewest.

    While no pod is ready, Envoy tries again and again until one is. It is without the cluster `engines`.

    Args:
        keys: file with the API keys; empty for none.
        hold: seconds that a request waits while no pod is ready; 0 for none.
        sums: SHA-256 checksums of the API keys, in place of a file.
        port: port of requests.
    """
    route = {"match": {"prefix": "/"}, "route": {"cluster": "engines", **_no_limits(), **_retries(hold)}}
    listener = _listener("requests", port, _manager([route], _key_filters(keys, sums)))
    return {
        "admin": {"address": _address("127.0.0.1", _ADMIN)},
        "static_resources": {
            # A request is sent again only if its whole body is still there.
            "listeners": [
                {**listener, "per_connection_buffer_limit_bytes": _HELD_BODY},
                _listener("health", READY, _health()),
            ],
            "clusters": [_static("admin", _ADMIN)],
        },
    }


def engines_cluster(host: str, port: int, *, plain: bool = False) -> str:
    """Return the beginning and the end of the cluster of all pods, as the argument of `--config-yaml`.

    Args:
        host: a DNS name with the addresses of the ready pods.
        port: their port.
        plain: whether no picker chooses. Then a second group has an address that refuses connections, because Envoy
            sends a request again after a failure, but not where it has no address; and a pod answers one request on a
            connection, so that none is sent on a connection that the pod is about to close.
    """
    many = "max_connections: 40000, max_pending_requests: 40000, max_requests: 40000"
    more, refuses = "", ""
    if plain:
        many += ", max_retries: 40000"
        protocol = f"{_EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions"
        more = (
            "dns_refresh_rate: 1s, typed_extension_protocol_options: "
            f"{{envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {{'@type': {protocol}, "
            "common_http_protocol_options: {max_requests_per_connection: 1}, "
            "explicit_http_config: {http_protocol_options: {}}}}, "
        )
        refuses = f", {{priority: 1, lb_endpoints: [{_endpoint('127.0.0.1', _REFUSES)}]}}"
    return (
        "static_resources: {clusters: [{name: engines, type: STRICT_DNS, connect_timeout: 5s, "
        f"{more}lb_policy: LEAST_REQUEST, circuit_breakers: {{thresholds: [{{{many}}}]}}, load_assignment: "
        f"{{cluster_name: engines, endpoints: [{{lb_endpoints: [{_endpoint(host, port)}]}}{refuses}]}}}}]}}"
    )


def _endpoint(host: str, port: int) -> str:
    return f"{{endpoint: {{address: {{socket_address: {{address: {host}, port_value: {port}}}}}}}}}"


def _requests(keys: str, *, fail_open: bool, hold: int) -> _Config:
    picker = f"{_EXTENSIONS}.filters.http.ext_proc.v3"
    asked: list[Any] = [
        {
            "match": {"path": path, "headers": [{"name": _CHOSEN, "present_match": True}]},
            "route": {"cluster": "chosen", **_no_limits()},
        }
        for path in PICKED
    ]
    asked += [
        {"match": {"path": path}, "route": {"cluster": "engines", **_no_limits(), **_retries()}} for path in PICKED
    ]
    unasked = {
        "match": {"prefix": "/"},
        "route": {"cluster": "engines", **_no_limits(), **_retries()},
        "typed_per_filter_config": {
            "envoy.filters.http.ext_proc": {"@type": f"{picker}.ExtProcPerRoute", "disabled": True}
        },
    }
    filters = _key_filters(keys)
    filters.append(
        {
            "name": "envoy.filters.http.ext_proc",
            "typed_config": {
                "@type": f"{picker}.ExternalProcessor",
                "grpc_service": {"envoy_grpc": {"cluster_name": "picker"}},
                "failure_mode_allow": fail_open,
                "status_on_error": {"code": "ServiceUnavailable"},
                "message_timeout": f"{hold + 30}s",
                # Bodies of requests pass in pieces, of any size. Responses pass the picker by: it reads the load from
                # the pods, and an answer that streams goes on when the picker dies.
                "processing_mode": {
                    "request_header_mode": "SEND",
                    "request_body_mode": "FULL_DUPLEX_STREAMED",
                    "request_trailer_mode": "SEND",
                    "response_header_mode": "SKIP",
                    "response_body_mode": "NONE",
                    "response_trailer_mode": "SKIP",
                },
            },
        }
    )
    return _manager([*asked, unasked], filters)


def _key_filters(keys: str, sums: Sequence[str] = ()) -> list[Any]:
    """Return the filter that answers 401 to requests without a valid key; none without keys."""
    if not keys and not sums:
        return []
    text = program_text("router_keys.lua").replace("@FILE@", keys)
    if sums:
        listed = ", ".join(f'["{checksum}"] = true' for checksum in sums)
        text = program_text("router_sums.lua").replace("@SUMS@", listed)
    text += program_text("router_auth.lua")
    lua = {"@type": f"{_EXTENSIONS}.filters.http.lua.v3.Lua", "default_source_code": {"inline_string": text}}
    return [{"name": "envoy.filters.http.lua", "typed_config": lua}]


def _manager(routes: Sequence[Any], filters: Sequence[Any]) -> _Config:
    return {
        "stat_prefix": "requests",
        "stream_idle_timeout": "0s",
        "request_headers_timeout": "30s",
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
        # A client's own would choose the address that Envoy connects to.
        "early_header_mutation_extensions": [
            {
                "name": "envoy.http.early_header_mutation.header_mutation",
                "typed_config": {
                    "@type": f"{_EXTENSIONS}.http.early_header_mutation.header_mutation.v3.HeaderMutation",
                    "mutations": [{"remove": _CHOSEN}, {"remove": f"{_CHOSEN}-subset"}],
                },
            }
        ],
        "route_config": {"virtual_hosts": [{"name": "model", "domains": ["*"], "routes": [*routes]}]},
        "http_filters": [*filters, _router()],
    }


def _health() -> _Config:
    """Return the listener of the kubelet and of Prometheus."""
    return {
        "stat_prefix": "health",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "health",
                    "domains": ["*"],
                    "routes": [
                        {"match": {"path": "/ready"}, "route": {"cluster": "admin"}},
                        {"match": {"path": STATISTICS}, "route": {"cluster": "admin"}},
                    ],
                }
            ]
        },
        "http_filters": [_router()],
    }


def _listener(name: str, port: int, manager: _Config) -> _Config:
    typed = f"{_EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager"
    http = {"name": "envoy.filters.network.http_connection_manager", "typed_config": {"@type": typed, **manager}}
    return {"name": name, "address": _address("0.0.0.0", port), "filter_chains": [{"filters": [http]}]}


def _address(host: str, port: int) -> _Config:
    return {"socket_address": {"address": host, "port_value": port}}


def _static(name: str, port: int, *, health: int = 0) -> _Config:
    check = {"health_check_config": {"port_value": health}} if health else {}
    endpoint = {"endpoint": {"address": _address("127.0.0.1", port), **check}}
    return {
        "name": name,
        "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def _router() -> _Config:
    return {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{_EXTENSIONS}.filters.http.router.v3.Router"},
    }


def _no_limits() -> _Config:
    """Return the fields of a route whose answers may take as long as they need."""
    return {"timeout": "0s", "idle_timeout": "0s"}


def _retries(hold: int = 0) -> _Config:
    """Return the field of a route that asks another pod when the first one cannot be reached.

    Between two tries, Envoy waits for a random time below the interval, so that two take a second on average.

    Args:
        hold: seconds for which it tries; 0 for two more tries at once.
    """
    policy: _Config = {"retry_on": "connect-failure,refused-stream", "num_retries": 2 * max(hold, 1)}
    if hold:
        policy["retry_back_off"] = {"base_interval": "1s", "max_interval": "1s"}
    return {"retry_policy": policy}


def _many_requests() -> _Config:
    """Return the field of a cluster that allows more than the default of 1,024 requests at once."""
    most = {name: 40000 for name in ("max_connections", "max_pending_requests", "max_requests")}
    return {"circuit_breakers": {"thresholds": [most]}}
