"""The configuration of an Endpoint's Envoy. Every fact is of version 1.40; `tests/cluster/test_endpoint.py` runs it.

A request passes these filters: its key is checked and names the client, the client's limit is taken from, the body is
read for its `model`, and the model decides the Topology.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.builders.envoy import (
    EXTENSIONS,
    Config,
    bootstrap,
    connection_limits,
    fallback_cluster,
    listener,
    lua_filter,
    no_limits,
    retries,
    router_filter,
)
from kaigen.compile.builders.envoy_telemetry import counts
from kaigen.compile.endpoint.access import Access
from kaigen.programs.files import program_text

PORT = 8080
"""Port of requests."""

FOLDER, CLIENT_KEYS, ENGINE_KEYS = "/etc/kaigen/endpoint", "/etc/kaigen/clients", "/etc/kaigen/engines"
"""Folders of the configuration, of the clients' keys, and of the keys of Topologies."""

PEERS = "endpoint"
"""Cluster of the Endpoint's own pods, which share each client's limit."""

ASKED = (
    *("/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"),
    *("/v1/messages", "/rerank", "/v1/rerank", "/score", "/v1/score"),
)
"""Paths of vLLM with a `model` in a JSON body (source: api_router.py of openai, anthropic and pooling, each in a folder
of vllm/entrypoints)."""

_BODY = "kaigen.body"
_ERRORS = {
    400: ("invalid_request_error", "invalid_body"),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "model_not_allowed"),
    404: ("invalid_request_error", "model_not_found"),
    413: ("invalid_request_error", "body_too_large"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}
_FILL_SECONDS = 60

_LABELS = {"client": "%DYNAMIC_METADATA(kaigen:client)%", "model": "%DYNAMIC_METADATA(kaigen:model)%"}
"""Of the metrics of requests: a client of the spec, and a model that is served; `-` before either is known."""


def envoy_config(
    access: Access, *, body: int, drain: int, weights: Mapping[str, int] | None = None, counted: bool = False
) -> Config:
    """Return Envoy's configuration, without the clusters of Topologies and of its own pods, whose names are settings.

    Args:
        access: who may use what.
        body: most bytes of a request's body.
        drain: seconds that a pod goes on when it ends.
        weights: percentage of the requests that the canary of a Topology gets, where that is more than none.
        counted: whether metrics count requests by client and model.
    """
    weights = weights or {}
    paths = ", ".join(f'["{path}"] = true' for path in ASKED)
    shared = program_text("api_keys.lua")
    keys = shared + program_text("endpoint_keys.lua").replace("@FOLDER@", FOLDER).replace("@KEYS@", CLIENT_KEYS)
    models = shared + program_text("endpoint_models.lua").replace("@FOLDER@", FOLDER).replace("@KEYS@", ENGINE_KEYS)
    manager = {
        "stat_prefix": "requests",
        **connection_limits(),
        # Names of models may have a slash, and no path is passed on that is not one of `ASKED`.
        "path_with_escaped_slashes_action": "KEEP_UNCHANGED",
        # Clients come back over another pod before this one ends.
        "common_http_protocol_options": {"max_connection_duration": f"{max(1, drain // 2)}s"},
        "http1_safe_max_connection_duration": True,
        # They would let a client decide how often Envoy asks an engine, and for how long it waits.
        "early_header_mutation_extensions": [
            {
                "name": "envoy.http.early_header_mutation.header_mutation",
                "typed_config": {
                    "@type": f"{EXTENSIONS}.http.early_header_mutation.header_mutation.v3.HeaderMutation",
                    "mutations": [{"remove_on_match": {"key_matcher": {"prefix": "x-envoy-"}}}],
                },
            }
        ],
        "access_log": [_access_log(), *([counts(_LABELS, "%RESPONSE_CODE%")] if counted else [])],
        "local_reply_config": {"mappers": [_error(status) for status in (*_ERRORS, 0)]},
        "route_config": {"virtual_hosts": [_routes(access, weights)]},
        "http_filters": [
            lua_filter("kaigen.keys", keys.replace("@PATHS@", paths)),
            _limits(access),
            _whole_body(body),
            _model(),
            lua_filter("kaigen.models", models),
            router_filter(),
        ],
    }
    return {
        "node": {"id": PEERS, "cluster": PEERS},
        "cluster_manager": {"local_cluster_name": PEERS},
        **bootstrap(
            [listener("requests", PORT, manager)],
            [
                fallback_cluster(_split(name), (canary_cluster(name), topology_cluster(name)))
                for name in sorted(weights)
            ],
        ),
    }


def topology_cluster(name: str) -> str:
    """Return the name of the cluster of a Topology."""
    return f"topology-{name}"


def canary_cluster(name: str) -> str:
    """Return the name of the cluster of a Topology's canary."""
    return f"canary-{name}"


def _split(name: str) -> str:
    """Return the name of the cluster that is the canary's, or the Topology's while no pod of the canary is ready."""
    return f"split-{name}"


def _routes(access: Access, weights: Mapping[str, int]) -> Config:
    """Return the route of each Topology; a request gets here only with one."""
    routes: list[Any] = [
        {
            "name": topology,
            "match": {
                "prefix": "/",
                "dynamic_metadata": [
                    {"filter": "kaigen", "path": [{"key": "backend"}], "value": {"string_match": {"exact": topology}}}
                ],
            },
            "route": _target(topology, weights.get(topology, 0)),
        }
        for topology in sorted(set(access.models.values()))
    ]
    nothing = {"match": {"prefix": "/"}, "direct_response": {"status": 404}}
    return {"name": "models", "domains": ["*"], "routes": [*routes, nothing]}


def _target(topology: str, weight: int) -> Config:
    """Return how a route sends requests on: to the clusters that answer, without time limits."""
    if not weight:
        return {"cluster": topology_cluster(topology), **no_limits(), **retries()}
    shares = {topology_cluster(topology): 100 - weight, _split(topology): weight}
    clusters = [{"name": name, "weight": share} for name, share in shares.items()]
    return {"weighted_clusters": {"clusters": clusters}, **no_limits(), **retries(elsewhere=True)}


def _limits(access: Access) -> Config:
    """Return the filter that answers 429 when a client has no requests left. All pods together allow its limit."""
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    limited = {name: client.rate for name, client in sorted(access.clients.items()) if client.rate}
    return {
        "name": "envoy.filters.http.local_ratelimit",
        "typed_config": {
            "@type": f"{EXTENSIONS}.filters.http.local_ratelimit.v3.LocalRateLimit",
            "stat_prefix": "clients",
            "filter_enabled": always,
            "filter_enforced": always,
            "local_cluster_rate_limit": {},
            "rate_limits": [
                {
                    "actions": [
                        {
                            "metadata": {
                                "descriptor_key": "client",
                                "metadata_key": {"key": "kaigen", "path": [{"key": "client"}]},
                            }
                        }
                    ]
                }
            ],
            # One for every client without a limit, as the filter needs one.
            "token_bucket": {"max_tokens": 4294967295, "tokens_per_fill": 4294967295, "fill_interval": "1s"},
            "descriptors": [
                {
                    "entries": [{"key": "client", "value": name}],
                    "token_bucket": {
                        "max_tokens": rate,
                        "tokens_per_fill": rate,
                        "fill_interval": f"{_FILL_SECONDS}s",
                    },
                }
                for name, rate in limited.items()
            ],
        },
    }


def _whole_body(most: int) -> Config:
    """Return the filter that waits for a body, and answers 413 to a longer one."""
    typed = f"{EXTENSIONS}.filters.http.buffer.v3.Buffer"
    return {"name": "envoy.filters.http.buffer", "typed_config": {"@type": typed, "max_request_bytes": most}}


def _model() -> Config:
    """Return the filter that reads the `model` of a body."""
    present = {"metadata_namespace": _BODY, "key": "model"}
    return {
        "name": "envoy.filters.http.json_to_metadata",
        "typed_config": {
            "@type": f"{EXTENSIONS}.filters.http.json_to_metadata.v3.JsonToMetadata",
            "request_rules": {
                "allow_content_types_regex": {"regex": r"application/json\s*(;.*)?"},
                "rules": [{"selectors": [{"key": "model"}], "on_present": present}],
            },
        },
    }


def _error(status: int) -> Config:
    """Return how an answer of Envoy's own with this status looks: as an error of OpenAI's API; 0 for all others."""
    kind, code = _ERRORS.get(status, ("server_error", None))
    compared = {"op": "EQ" if status else "GE", "value": {"default_value": status or 400, "runtime_key": "none"}}
    limit = "This key has no requests left in this minute."
    error = {"message": limit if status == 429 else "%LOCAL_REPLY_BODY%", "type": kind, "param": None, "code": code}
    retry = {"header": {"key": "retry-after", "value": "%DYNAMIC_METADATA(kaigen:retry)%"}}
    return {
        "filter": {"status_code_filter": {"comparison": compared}},
        "body_format_override": {"json_format": {"error": error}},
        **({"headers_to_add": [retry]} if status == 429 else {}),
    }


def _access_log() -> Config:
    """Return the log of requests: nothing of a body, no header, and of the model only a name that is served."""
    fields = {
        "time": "%START_TIME%",
        "client": "%DYNAMIC_METADATA(kaigen:client)%",
        "model": "%DYNAMIC_METADATA(kaigen:model)%",
        "topology": "%DYNAMIC_METADATA(kaigen:backend)%",
        "status": "%RESPONSE_CODE%",
        "why": "%RESPONSE_CODE_DETAILS%",
        "flags": "%RESPONSE_FLAGS%",
        "method": "%REQ(:METHOD)%",
        "path": "%PATH(NQ:PATH:200)%",
        "received": "%BYTES_RECEIVED%",
        "sent": "%BYTES_SENT%",
        "milliseconds": "%DURATION%",
        "first_byte_milliseconds": "%RESPONSE_DURATION%",
        "from": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
        "pod": "%UPSTREAM_HOST%",
        "request_id": "%REQ(X-REQUEST-ID)%",
    }
    return {
        "name": "envoy.access_loggers.stdout",
        "typed_config": {
            "@type": f"{EXTENSIONS}.access_loggers.stream.v3.StdoutAccessLog",
            "log_format": {"json_format": fields},
        },
    }
