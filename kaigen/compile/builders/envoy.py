"""Parts of Envoy's configuration that a router and an Endpoint share. Every fact is of Envoy 1.40."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

READY = 19001
"""Port of Envoy's health and metrics."""

ADMIN = 19000
_REFUSES = 1
"""Port of the loopback interface on which nothing listens, so that every connection is refused at once."""

STATISTICS = "/stats/prometheus"
"""Path of Envoy's metrics."""

EXTENSIONS = "type.googleapis.com/envoy.extensions"

Config = dict[str, Any]


def bootstrap(listeners: list[Config], clusters: list[Config]) -> Config:
    """Return the configuration of an Envoy with a listener for the kubelet and Prometheus.

    Args:
        listeners: its other listeners.
        clusters: its clusters, without that of the administration interface.
    """
    return {
        # Only for the probe's listener, which has the two paths that are safe to show.
        "admin": {"address": address("127.0.0.1", ADMIN)},
        "static_resources": {
            "listeners": [*listeners, listener("health", READY, _health())],
            "clusters": [*clusters, static_cluster("admin", ADMIN)],
        },
    }


def listener(name: str, port: int, manager: Config, *, host: str = "0.0.0.0") -> Config:
    """Return a listener of HTTP."""
    typed = f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager"
    http = {"name": "envoy.filters.network.http_connection_manager", "typed_config": {"@type": typed, **manager}}
    return {"name": name, "address": address(host, port), "filter_chains": [{"filters": [http]}]}


def connection_limits() -> Config:
    """Return fields of a listener's manager: requests of any length, and paths that mean one thing only."""
    return {
        "stream_idle_timeout": "0s",
        "request_headers_timeout": "30s",
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
    }


def address(host: str, port: int) -> Config:
    """Return an address."""
    return {"socket_address": {"address": host, "port_value": port}}


def static_cluster(name: str, port: int, *, health: int = 0) -> Config:
    """Return a cluster of one port of the own pod.

    Args:
        name: name of the cluster.
        port: the port.
        health: port of its health, if that is another one.
    """
    check = {"health_check_config": {"port_value": health}} if health else {}
    endpoint = {"endpoint": {"address": address("127.0.0.1", port), **check}}
    return {
        "name": name,
        "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def dns_cluster(
    name: str,
    host: str,
    port: int,
    *,
    idle: str = "",
    again: bool = False,
    by_hash: bool = False,
    split: bool = False,
    checked: bool = False,
) -> str:
    """Return a cluster of all addresses of a DNS name, as an entry of a list in an argument of `--config-yaml`.

    Args:
        name: name of the cluster.
        host: the DNS name.
        port: the port.
        idle: after which time a connection without requests ends; empty for Envoy's hour.
        again: whether Envoy sends requests again until a pod takes them. Then a second group has an address that
            refuses connections, because Envoy does so after a failure, but not where a cluster has no address; and a
            pod answers one request on a connection, so that none is sent on one that the pod is about to close.
        by_hash: whether the hash of a route chooses the pod, and not the number of requests.
        split: whether it has a share of the requests of a Topology, which go to another cluster when it fails: each
            may be sent again, while Envoy's default is three at once.
        checked: whether Envoy tries every second to connect, and until then takes the cluster as not ready.
    """
    limits = {**({"idle_timeout": idle} if idle else {}), **({"max_requests_per_connection": "1"} if again else {})}
    options = "upstreams.http.v3.HttpProtocolOptions"
    typed = (
        f"typed_extension_protocol_options: {{envoy.extensions.{options}: {{'@type': {EXTENSIONS}.{options}, "
        f"common_http_protocol_options: {{{_flow(limits)}}}, "
        "explicit_http_config: {http_protocol_options: {}}}}, "
        if limits
        else ""
    )
    refuses = f", {{priority: 1, lb_endpoints: [{_endpoint('127.0.0.1', _REFUSES)}]}}" if again else ""
    return (
        f"{{name: {name}, type: STRICT_DNS, connect_timeout: 5s, {'dns_refresh_rate: 1s, ' if again else ''}"
        f"lb_policy: {'RING_HASH' if by_hash else 'LEAST_REQUEST'}, {_CHECKS if checked else ''}"
        f"{typed}circuit_breakers: {{thresholds: [{{{_flow(_most(again=again or split))}}}]}}, "
        f"load_assignment: {{cluster_name: {name}, "
        f"endpoints: [{{lb_endpoints: [{_endpoint(host, port)}]}}{refuses}]}}}}"
    )


_CHECKS = (
    "health_checks: [{timeout: 1s, interval: 1s, no_traffic_interval: 1s, unhealthy_threshold: 1, "
    "healthy_threshold: 1, tcp_health_check: {}}], "
)


def fallback_cluster(name: str, clusters: Sequence[str]) -> Config:
    """Return a cluster whose requests go to the first of some clusters that has a healthy address.

    Args:
        name: its name.
        clusters: names of the others.
    """
    typed = f"{EXTENSIONS}.clusters.aggregate.v3.ClusterConfig"
    return {
        "name": name,
        "connect_timeout": "5s",
        "lb_policy": "CLUSTER_PROVIDED",
        "circuit_breakers": {"thresholds": [{**_MOST, "max_retries": _MOST["max_requests"]}]},
        "cluster_type": {
            "name": "envoy.clusters.aggregate",
            "typed_config": {"@type": typed, "clusters": [*clusters]},
        },
    }


def _flow(fields: Mapping[str, object]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in fields.items())


def _endpoint(host: str, port: int) -> str:
    return f"{{endpoint: {{address: {{socket_address: {{address: {host}, port_value: {port}}}}}}}}}"


def dns_clusters(clusters: str) -> str:
    """Return the argument of `--config-yaml` with clusters of `dns_cluster`, of which Envoy adds them to its own."""
    return f"static_resources: {{clusters: [{clusters}]}}"


def lua_filter(name: str, text: str) -> Config:
    """Return a filter that runs a script."""
    typed = f"{EXTENSIONS}.filters.http.lua.v3.Lua"
    return {"name": name, "typed_config": {"@type": typed, "default_source_code": {"inline_string": text}}}


def router_filter() -> Config:
    """Return the last filter."""
    return {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{EXTENSIONS}.filters.http.router.v3.Router"},
    }


def no_limits() -> Config:
    """Return the fields of a route whose answers may take as long as they need."""
    return {"timeout": "0s", "idle_timeout": "0s"}


def retries(hold: int = 0, *, elsewhere: bool = False) -> Config:
    """Return the field of a route that asks another pod when the first one cannot be reached.

    Between two tries, Envoy waits for a random time below the interval, so that two take a second on average.

    Args:
        hold: seconds for which it tries; 0 for two more tries at once.
        elsewhere: whether a further try goes to the next cluster of a `fallback_cluster`.
    """
    typed = f"{EXTENSIONS}.retry.host.previous_hosts.v3.PreviousHostsPredicate"
    policy: Config = {
        "retry_on": "connect-failure,refused-stream",
        "num_retries": 2 * max(hold, 1),
        "retry_host_predicate": [
            {"name": "envoy.retry_host_predicates.previous_hosts", "typed_config": {"@type": typed}}
        ],
        "host_selection_retry_max_attempts": 5,
    }
    if hold:
        policy["retry_back_off"] = {"base_interval": "1s", "max_interval": "1s"}
    if elsewhere:
        typed = f"{EXTENSIONS}.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig"
        policy["retry_priority"] = {
            "name": "envoy.retry_priorities.previous_priorities",
            "typed_config": {"@type": typed, "update_frequency": 1},
        }
    return {"retry_policy": policy}


_MOST = {name: 40000 for name in ("max_connections", "max_pending_requests", "max_requests")}


def many_requests(*, again: bool = False) -> Config:
    """Return the field of a cluster that allows more than the default of 1,024 requests at once.

    Args:
        again: whether Envoy sends requests again until a pod takes them.
    """
    return {"circuit_breakers": {"thresholds": [_most(again=again)]}}


def _most(*, again: bool) -> dict[str, int]:
    return {**_MOST, **({"max_retries": _MOST["max_requests"]} if again else {})}


def http_options(fields: Config) -> Config:
    """Return the field of a cluster with options of HTTP."""
    options = "upstreams.http.v3.HttpProtocolOptions"
    return {
        "typed_extension_protocol_options": {
            f"envoy.extensions.{options}": {"@type": f"{EXTENSIONS}.{options}", **fields}
        }
    }


def _health() -> Config:
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
        "http_filters": [router_filter()],
    }
