"""The configuration of a router: Envoy's, and that of the endpoint picker which Envoy asks for a pod.

Every fact about the picker is of version 1.5.0 of sigs.k8s.io/gateway-api-inference-extension, every one about Envoy of
1.40; `tests/cluster/test_router.py` runs both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kaigen.compile.builders.envoy import (
    EXTENSIONS,
    Config,
    bootstrap,
    connection_limits,
    dns_cluster,
    dns_clusters,
    listener,
    lua_filter,
    many_requests,
    no_limits,
    retries,
    router_filter,
    static_cluster,
)
from kaigen.programs.files import program_text

ROUTER, ROUTER_SUFFIX = "router", "-router"
"""Component of the router's pods, and end of the names of its objects."""

PORT, GRPC, GRPC_HEALTH, METRICS = 8080, 9002, 9003, 9090
"""Ports of a router's pod: requests; the picker's calls, health and metrics (pkg/epp/server/options.go)."""

PICKED = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses")
"""Paths whose bodies the picker reads (pkg/epp/framework/plugins/requesthandling/parsers/openai/openai.go). It answers
400 to others, such as forms with audio, so these go to the pod with the fewest requests."""

_CHOSEN = "x-gateway-destination-endpoint"
"""Header with the pod that the picker chose (pkg/epp/metadata/consts.go)."""

QUEUE_METRIC = "inference_extension_flow_control_queue_size"
"""Requests that the picker holds (pkg/epp/metrics/metrics.go)."""

OF_CLIENTS = 'envoy_http_conn_manager_prefix="requests"'
"""Label of Envoy's metrics of the requests that clients sent, and not probes."""

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

_HELD_BYTES = "256Mi"
_HELD_BODY = 16 << 20


def picker_config(policy: str, *, adapters: bool, hold: int) -> Config:
    """Return the EndpointPickerConfig.

    Args:
        policy: policy of the router.
        adapters: whether pods that have loaded a request's adapter are preferred.
        hold: seconds that requests wait while no pod can take them; 0 for none.
    """
    scorers = dict(_SCORERS[policy]) | ({"lora-affinity-scorer": 1} if adapters else {})
    held: Config = {
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


def envoy_config(*, keys: str, fail_open: bool, hold: int, port: int = PORT) -> Config:
    """Return the configuration of an Envoy with a picker.

    It is without the cluster `engines`, whose host name depends on the release.

    Args:
        keys: file with the API keys; empty for none.
        fail_open: whether requests go to any pod when the picker does not answer.
        hold: seconds that the picker may hold a request.
        port: port of requests.
    """
    chosen: Config = {
        "name": "chosen",
        "type": "ORIGINAL_DST",
        "lb_policy": "CLUSTER_PROVIDED",
        "connect_timeout": "5s",
        "original_dst_lb_config": {"use_http_header": True, "http_header_name": _CHOSEN},
        **many_requests(),
    }
    picker: Config = {
        **static_cluster("picker", GRPC, health=GRPC_HEALTH),
        "connect_timeout": "1s",
        **many_requests(),
        # Envoy passes a request on only as long as it has sent nothing of its body to the picker. So it has to know
        # before that the picker is down.
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
                "@type": f"{EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
    }
    requests = listener("requests", port, _requests(keys, fail_open=fail_open, hold=hold))
    return bootstrap([requests], [chosen, picker])


def plain_config(*, keys: str, hold: int, sums: Sequence[str] = (), port: int = PORT) -> Config:
    """Return the configuration of an Envoy without a picker: a request goes to the pod with the fewest.

    While no pod is ready, Envoy tries again and again until one is. It is without the cluster `engines`.

    Args:
        keys: file with the API keys; empty for none.
        hold: seconds that a request waits while no pod is ready; 0 for none.
        sums: SHA-256 checksums of the API keys, in place of a file.
        port: port of requests.
    """
    route = {"match": {"prefix": "/"}, "route": {"cluster": "engines", **no_limits(), **retries(hold)}}
    requests = listener("requests", port, _manager([route], _key_filters(keys, sums)))
    # A request is sent again only if its whole body is still there.
    return bootstrap([{**requests, "per_connection_buffer_limit_bytes": _HELD_BODY}], [])


def engines_cluster(host: str, port: int, *, plain: bool = False) -> str:
    """Return the beginning and the end of the cluster of all pods, as the argument of `--config-yaml`.

    Args:
        host: a DNS name with the addresses of the ready pods.
        port: their port.
        plain: whether no picker chooses, so that Envoy itself sends a request again.
    """
    return dns_clusters(dns_cluster("engines", host, port, again=plain))


def _requests(keys: str, *, fail_open: bool, hold: int) -> Config:
    picker = f"{EXTENSIONS}.filters.http.ext_proc.v3"
    asked: list[Any] = [
        {
            "match": {"path": path, "headers": [{"name": _CHOSEN, "present_match": True}]},
            "route": {"cluster": "chosen", **no_limits()},
        }
        for path in PICKED
    ]
    asked += [{"match": {"path": path}, "route": {"cluster": "engines", **no_limits(), **retries()}} for path in PICKED]
    unasked = {
        "match": {"prefix": "/"},
        "route": {"cluster": "engines", **no_limits(), **retries()},
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
    return [lua_filter("envoy.filters.http.lua", text + program_text("router_auth.lua"))]


def _manager(routes: Sequence[Any], filters: Sequence[Any]) -> Config:
    return {
        "stat_prefix": "requests",
        **connection_limits(),
        # A client's own would choose the address that Envoy connects to.
        "early_header_mutation_extensions": [
            {
                "name": "envoy.http.early_header_mutation.header_mutation",
                "typed_config": {
                    "@type": f"{EXTENSIONS}.http.early_header_mutation.header_mutation.v3.HeaderMutation",
                    "mutations": [{"remove": _CHOSEN}, {"remove": f"{_CHOSEN}-subset"}],
                },
            }
        ],
        "route_config": {"virtual_hosts": [{"name": "model", "domains": ["*"], "routes": [*routes]}]},
        "http_filters": [*filters, router_filter()],
    }
