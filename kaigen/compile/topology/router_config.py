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
    http_options,
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

_KEPT_BODY = 16 << 20
"""Longest body that Envoy keeps to send the request again, and that the picker reads: it keeps a body whole."""

_LONG = {"name": "content-length", "range_match": {"start": _KEPT_BODY + 1, "end": 1 << 53}}
"""Match of requests with longer bodies."""

_INNER = 8081
"""Port of the loopback interface with the listener that asks the picker."""

_AGAIN = "x-kaigen-again"
"""Header of answers of that listener to requests that no replica got."""

_TRIES = 20


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
        **http_options({"explicit_http_config": {"http2_protocol_options": {}}}),
    }
    inner: Config = {
        **static_cluster("inner", _INNER),
        **many_requests(again=True),
        **http_options(
            {
                "common_http_protocol_options": {"idle_timeout": "60s"},
                "explicit_http_config": {"http_protocol_options": {}},
            }
        ),
    }
    manager = _manager("requests", _requests(fail_open, hold), [*_key_filters(keys), _kept()])
    manager["route_config"]["virtual_hosts"][0]["include_request_attempt_count"] = True
    picked = listener("picked", _INNER, _picked(fail_open=fail_open, hold=hold), host="127.0.0.1")
    return bootstrap([listener("requests", port, manager), picked], [inner, chosen, picker])


def plain_config(*, keys: str, hold: int, sums: Sequence[str] = (), session: str = "", port: int = PORT) -> Config:
    """Return the configuration of an Envoy without a picker: a request goes to the pod with the fewest.

    While no pod is ready, Envoy tries again and again until one is. It is without the cluster `engines`.

    Args:
        keys: file with the API keys; empty for none.
        hold: seconds that a request waits while no pod is ready; 0 for none.
        sums: SHA-256 checksums of the API keys, in place of a file.
        session: header whose value decides which pod gets a request; empty for none.
        port: port of requests.
    """
    to: Config = {"cluster": "engines", **no_limits(), **retries(hold)}
    if session:
        to["hash_policy"] = [{"header": {"header_name": session}}]
    # A request is sent again only if its whole body is still there.
    route = {"match": {"prefix": "/"}, "route": to, "request_body_buffer_limit": _KEPT_BODY}
    return bootstrap([listener("requests", port, _manager("requests", [route], _key_filters(keys, sums)))], [])


def engines_cluster(host: str, port: int, *, plain: bool = False, session: bool = False) -> str:
    """Return the beginning and the end of the cluster of all pods, as the argument of `--config-yaml`.

    Args:
        host: a DNS name with the addresses of the ready pods.
        port: their port.
        plain: whether no picker chooses, so that Envoy itself sends a request again.
        session: whether requests of a session stay with a pod.
    """
    return dns_clusters(dns_cluster("engines", host, port, again=plain, by_hash=session))


def _requests(fail_open: bool, hold: int) -> list[Config]:
    """Return the routes of clients' requests: to the listener that asks the picker, or to any pod.

    A request that has reached no replica is sent again. If requests may go to any pod without the picker, the listener
    asks it at every other try only.
    """
    again: Config = {
        "retry_on": "retriable-headers",
        "retriable_headers": [{"name": _AGAIN, "present_match": True}],
        "num_retries": 3,
    }
    if hold or not fail_open:
        again |= {"num_retries": _TRIES, "retry_back_off": {"base_interval": "0.25s", "max_interval": "1s"}}
    route = {"cluster": "inner", **no_limits(), "retry_policy": again}
    marked = {"response_headers_to_remove": [_AGAIN]}
    buffer = f"{EXTENSIONS}.filters.http.buffer.v3.BufferPerRoute"
    # Envoy sends a request again only if it has the whole body when the answer comes.
    kept = {
        "request_body_buffer_limit": _KEPT_BODY,
        "typed_per_filter_config": {
            "envoy.filters.http.buffer": {"@type": buffer, "buffer": {"max_request_bytes": _KEPT_BODY}}
        },
    }
    unpicked: Config = {"route": {"cluster": "engines", **no_limits(), **retries()}}
    routes: list[Config] = []
    for path in PICKED:
        routes += [{"match": {"path": path, "headers": [_LONG]}, **unpicked}]
        routes += [{"match": {"path": path}, "route": route, **marked, **kept}]
    return [*routes, {"match": {"prefix": "/"}, **unpicked}]


def _kept() -> Config:
    """Return the filter that waits for the whole body; only routes switch it on."""
    typed = {"@type": f"{EXTENSIONS}.filters.http.buffer.v3.Buffer", "max_request_bytes": _KEPT_BODY}
    return {"name": "envoy.filters.http.buffer", "typed_config": typed, "disabled": True}


def _picked(*, fail_open: bool, hold: int) -> Config:
    """Return the manager of the listener that asks the picker, and marks answers to requests that no replica got."""
    picker = f"{EXTENSIONS}.filters.http.ext_proc.v3"
    unasked: Config = {
        "match": {
            "prefix": "/",
            "headers": [{"name": "x-envoy-attempt-count", "string_match": {"safe_regex": {"regex": ".*[02468]"}}}],
        },
        "route": {"cluster": "engines", **no_limits(), **retries()},
        "typed_per_filter_config": {
            "envoy.filters.http.ext_proc": {"@type": f"{picker}.ExtProcPerRoute", "disabled": True}
        },
    }
    asked: list[Config] = [
        {
            "match": {"prefix": "/", "headers": [{"name": _CHOSEN, "present_match": True}]},
            "route": {"cluster": "chosen", **no_limits()},
        },
        {"match": {"prefix": "/"}, "route": {"cluster": "engines", **no_limits(), **retries()}},
    ]
    asks: Config = {
        "name": "envoy.filters.http.ext_proc",
        "typed_config": {
            "@type": f"{picker}.ExternalProcessor",
            "grpc_service": {"envoy_grpc": {"cluster_name": "picker"}},
            "failure_mode_allow": fail_open,
            "status_on_error": {"code": "NotExtended"},
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
    failed = {"op": "EQ", "value": {"default_value": 510, "runtime_key": "kaigen.picker_failed"}}
    # The pod could not be reached, or with `hold` none is there.
    flags = ["UF", "UH"] if hold else ["UF"]
    unreached = [{"status_code_filter": {"comparison": failed}}, {"response_flag_filter": {"flags": flags}}]
    mapper: Config = {
        "filter": {"or_filter": {"filters": unreached}},
        "status_code": 503,
        "headers_to_add": [{"header": {"key": _AGAIN, "value": "1"}}],
    }
    manager = _manager("picked", [*([unasked] if fail_open else []), *asked], [asks])
    # Clients' own headers are gone.
    del manager["early_header_mutation_extensions"]
    return {**manager, "local_reply_config": {"mappers": [mapper]}}


def _key_filters(keys: str, sums: Sequence[str] = ()) -> list[Any]:
    """Return the filter that answers 401 to requests without a valid key; none without keys."""
    if not keys and not sums:
        return []
    own = program_text("router_keys.lua").replace("@FILE@", keys)
    if sums:
        listed = ", ".join(f'["{checksum}"] = true' for checksum in sums)
        own = program_text("router_sums.lua").replace("@SUMS@", listed)
    return [lua_filter("envoy.filters.http.lua", program_text("api_keys.lua") + own + program_text("router_auth.lua"))]


def _manager(name: str, routes: Sequence[Any], filters: Sequence[Any]) -> Config:
    return {
        "stat_prefix": name,
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
