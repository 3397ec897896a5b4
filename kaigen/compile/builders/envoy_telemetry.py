"""What Envoy reports of requests: traces by OTLP, and counts by client and model. Every fact is of Envoy 1.40."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kaigen.compile.builders.envoy import EXTENSIONS, Config, address, http_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kaigen.kinds.monitoring import Traces

COUNTED = "envoy_kaigen_requests"
"""Counter of the requests to an Endpoint, by `client`, `model` and `status`."""

LASTED = "envoy_kaigen_milliseconds"
"""Histogram of the times of their answers, by `client` and `model`."""

_COLLECTOR = "traces"
_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""Certificates of authorities in Envoy's image (envoyproxy/envoy, distribution/docker/Dockerfile-envoy)."""

_PORTS = {"http": 80, "https": 443}
_TRACE = "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig"


def with_traces(config: Config, traces: Traces | None, service: str) -> Config:
    """Return a configuration that sends a trace of each request to a collector; the same without one.

    A trace that a client began goes on: Envoy reads its header `traceparent`, and sends one to the engine.

    Args:
        config: the configuration, whose first listener has the requests.
        traces: the collector.
        service: name of the service in traces.
    """
    if traces is None:
        return config
    url = urlsplit(traces.endpoint)
    host, port = str(url.hostname), url.port or _PORTS[url.scheme]
    resources: dict[str, Any] = config["static_resources"]
    first, *others = resources["listeners"]
    collector = {
        "name": _COLLECTOR,
        "type": "STRICT_DNS",
        "connect_timeout": "5s",
        **(http_options({"explicit_http_config": {"http2_protocol_options": {}}}) if traces.protocol == "grpc" else {}),
        **(_tls(host) if url.scheme == "https" else {}),
        "load_assignment": {
            "cluster_name": _COLLECTOR,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(host, port)}}]}],
        },
    }
    if traces.protocol == "grpc":
        sent: Config = {"grpc_service": {"envoy_grpc": {"cluster_name": _COLLECTOR}, "timeout": "5s"}}
    else:
        http = {"uri": f"{url.scheme}://{url.netloc}{url.path or '/v1/traces'}", "cluster": _COLLECTOR, "timeout": "5s"}
        sent = {"http_service": {"http_uri": http}}
    provider = {
        "name": "envoy.tracers.opentelemetry",
        "typed_config": {"@type": _TRACE, **sent, "service_name": service},
    }
    return {
        **config,
        "static_resources": {
            **resources,
            "listeners": [_traced(first, {"provider": provider}), *others],
            "clusters": [*resources["clusters"], collector],
        },
    }


def _traced(listener: Config, tracing: Config) -> Config:
    """Return a listener whose manager of connections makes traces."""
    (chain,) = listener["filter_chains"]
    (manager,) = chain["filters"]
    typed = {**manager["typed_config"], "tracing": tracing}
    return {**listener, "filter_chains": [{**chain, "filters": [{**manager, "typed_config": typed}]}]}


def _tls(host: str) -> Config:
    context = {
        "@type": f"{EXTENSIONS}.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": host,
        "common_tls_context": {
            "validation_context": {
                "trusted_ca": {"filename": _AUTHORITIES},
                "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": host}}],
            }
        },
    }
    return {"transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": context}}


def counts(values: Mapping[str, str], status: str) -> Config:
    """Return the access log that counts requests and measures their times, with labels.

    Args:
        values: value of each label, as a command of Envoy's access logs. Each has few values: every pair is a metric.
        status: that of the label `status` of the counter.
    """

    def stat(name: str, labels: Mapping[str, str]) -> Config:
        return {"name": name, "tags": [{"name": key, "value_format": value} for key, value in labels.items()]}

    return {
        "name": "envoy.access_loggers.stats",
        "typed_config": {
            "@type": f"{EXTENSIONS}.access_loggers.stats.v3.Config",
            "stat_prefix": "kaigen",
            "counters": [{"stat": stat("requests", {**values, "status": status}), "value_fixed": 1}],
            "histograms": [
                {"stat": stat("milliseconds", values), "unit": "Milliseconds", "value_format": "%DURATION%"}
            ],
        },
    }
