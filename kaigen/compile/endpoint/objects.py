"""The objects of an Endpoint: Envoy, its configuration, and who may connect to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import account_fields, account_objects
from kaigen.compile.builders.alerts import RUNBOOK, prometheus_rule
from kaigen.compile.builders.dashboard import ENDPOINT_PANELS, dashboard
from kaigen.compile.builders.envoy import READY, STATISTICS, dns_cluster, dns_clusters
from kaigen.compile.builders.envoy_pod import budget, envoy_container, over_nodes, proxy_deployment
from kaigen.compile.builders.envoy_telemetry import with_traces
from kaigen.compile.builders.jobs import readiness_test, seconds
from kaigen.compile.builders.network import (
    client_peers,
    client_service,
    headless_service,
    network_switch,
    pod_monitor,
    service_port,
)
from kaigen.compile.builders.other_apps import other_name
from kaigen.compile.builders.pod_options import extended_pod
from kaigen.compile.builders.pods import pod_security, pull_secrets
from kaigen.compile.builders.routes import route_objects
from kaigen.compile.endpoint.access import ACCESS_FILE
from kaigen.compile.endpoint.envoy import (
    CLIENT_KEYS,
    ENGINE_KEYS,
    FOLDER,
    PEERS,
    PORT,
    canary_cluster,
    envoy_config,
    topology_cluster,
)
from kaigen.compile.endpoint.resolution import Backend, EndpointResolution
from kaigen.compile.expressions import DIGEST_LENGTH, Expr, Joined, Release, Tree
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.diagnostics.codes import page_url
from kaigen.kinds.blocks import Security
from kaigen.kubernetes.quantities import units
from kaigen.yaml.dump import dump

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kaigen.core.json_types import JsonObject

ENDPOINT = "endpoint"
"""Component of the pods."""

_PODS = "-pods"
_VOLUME = "endpoint"
_TEST_MINUTES = 5
_MARK = "@HOST@"

_IDLE = "4s"
"""Before an engine ends a connection that Envoy is about to use: uvicorn does after five seconds (its config.py)."""


def endpoint_objects(resolution: EndpointResolution) -> list[Object]:
    """Return the objects of an Endpoint, in the order of values.yaml."""
    spec, frame = resolution.spec, resolution.frame
    metadata = frame.metadata("", ENDPOINT, name=_config_name(resolution))
    data: Tree = {**_files(resolution)}
    workload = _deployment(resolution)
    objects = [
        *account_objects(spec, frame, ENDPOINT),
        Object(role="configmap", body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}),
        _policy(resolution),
        client_service(frame, ENDPOINT, spec.service),
        # The pods count each other by it.
        headless_service(frame, ENDPOINT, PORT, role="service-pods", name="http", suffix=_PODS, ready=True),
        workload,
    ]
    if spec.replicas > 1:
        objects.append(budget(frame, ENDPOINT, ""))
    if spec.monitoring is not None:
        objects.append(pod_monitor(frame, ENDPOINT, spec.monitoring, STATISTICS, port="envoy-metrics"))
        block, context = spec.monitoring, resolution.context
        namespace = resolution.metadata.namespace or context.config.namespace
        if block.alerts is not None:
            objects += prometheus_rule(
                frame, context, namespace, block.alerts, block.labels, [workload], dashboard=block.dashboard
            )
        if block.dashboard is not None:
            objects.append(dashboard(frame, block.dashboard, namespace, ENDPOINT_PANELS, page_url(RUNBOOK)))
    if spec.route is not None:
        profile = resolution.context.profile.name
        port = service_port(spec.service)
        objects += route_objects(frame, spec.route, path="/", service_port=port, pool=None, profile=profile)
    return [*objects, *readiness_test(frame, workload, resolution.context, minutes=_TEST_MINUTES)]


def _files(resolution: EndpointResolution) -> dict[str, str]:
    spec, access = resolution.spec, resolution.access
    body = units(spec.max_body)
    assert body is not None, "the model of the spec requires a quantity"
    weights = {each.name: each.weight for each in resolution.backends if each.weight}
    monitoring = spec.monitoring
    counted = monitoring is not None
    config = with_traces(
        envoy_config(access, body=body, drain=seconds(spec.drain), weights=weights, counted=counted),
        monitoring.traces if monitoring is not None else None,
        resolution.metadata.name,
    )
    return {"envoy.yaml": dump(config), ACCESS_FILE: access.text()}


def _config_name(resolution: EndpointResolution) -> Tree:
    """Return the name of the configuration, with a hash of it: a change is a new ConfigMap, and so new pods."""
    return Release(f"-{ENDPOINT}-{sha256_hex(go_json(_files(resolution)))[:DIGEST_LENGTH]}")


def _policy(resolution: EndpointResolution) -> Object:
    """Return the policy: clients reach requests, and who may read metrics those."""
    spec, frame = resolution.spec, resolution.frame
    clients = settings.objects(
        "networkPolicy.from",
        client_peers(spec.service, resolution.context, routed=spec.route is not None),
        "Clients that may connect, as NetworkPolicy peers; empty for everyone.",
        origin=("spec", "service", "allowFrom"),
    )
    rules: list[Tree] = [{"ports": [{"port": PORT, "protocol": "TCP"}], "from": clients}]
    all_pods: Sequence[JsonObject] = [{"namespaceSelector": {}}] if spec.monitoring is not None else []
    peers = spec.metrics_from or all_pods
    if peers:
        metrics = settings.objects(
            "networkPolicy.metricsFrom",
            peers,
            "Who may read metrics, as NetworkPolicy peers; empty for everyone.",
            origin=("spec", "metricsFrom"),
        )
        rules.append({"ports": [{"port": READY, "protocol": "TCP"}], "from": metrics})
    return Object(
        role="networkpolicy",
        when=network_switch(),
        body={
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": frame.metadata("", "network"),
            "spec": {
                "podSelector": {"matchLabels": frame.selector(ENDPOINT)},
                "policyTypes": ["Ingress"],
                "ingress": rules,
            },
        },
    )


def _deployment(resolution: EndpointResolution) -> Object:
    spec = resolution.spec
    replicas = settings.count("replicas", spec.replicas, "Pods of the Endpoint.", origin=("spec", "replicas"))
    pod = extended_pod(own_pod(resolution), spec, resolution.context)
    return proxy_deployment(resolution.frame, ENDPOINT, "", replicas, pod)


def own_pod(resolution: EndpointResolution) -> dict[str, Tree]:
    """Return the spec of the pod without what the fields about pods add."""
    spec, context = resolution.spec, resolution.context
    drain = seconds(spec.drain)
    image = context.config.images["envoy"]
    mounts: list[Tree] = [
        {"name": _VOLUME, "mountPath": FOLDER, "readOnly": True},
        {"name": "client-keys", "mountPath": CLIENT_KEYS, "readOnly": True},
    ]
    volumes: list[Tree] = [
        {"name": _VOLUME, "configMap": {"name": _config_name(resolution)}},
        {"name": "client-keys", "projected": {"sources": _client_keys(resolution), "defaultMode": 0o440}},
    ]
    if resolution.access.guarded:
        mounts.append({"name": "engine-keys", "mountPath": ENGINE_KEYS, "readOnly": True})
        volumes.append(
            {"name": "engine-keys", "projected": {"sources": _engine_keys(resolution), "defaultMode": 0o440}}
        )
    return {
        **account_fields(spec),
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": drain + 30,
        "imagePullSecrets": settings.pull_secrets(
            "imagePullSecrets", pull_secrets(image, spec=spec), "Secrets for pulling the images.", origin=()
        ),
        "topologySpreadConstraints": [over_nodes(resolution.frame, ENDPOINT)],
        "securityContext": pod_security(Security()),
        "containers": [
            envoy_container(
                context,
                "",
                "the Endpoint's",
                folder=FOLDER,
                clusters=_clusters(resolution),
                port=PORT,
                drain=drain,
                mounts=mounts,  # type: ignore[arg-type]
                memory=spec.memory,
            )
        ],
        "volumes": volumes,
    }


def _client_keys(resolution: EndpointResolution) -> list[Tree]:
    """Return the Secrets with the keys of clients, each as a file with the name of its client."""
    given = resolution.spec.clients
    sources: list[Tree] = []
    shared: list[Tree] = [
        {"key": name, "path": name} for name, client in sorted(given.items()) if client.secret is None
    ]
    if shared:
        own = resolution.spec.keys_secret
        name = own.name if own else f"{resolution.metadata.name}-keys"
        origin = ("spec", "keysSecret", "name") if own else ()
        secret = settings.text("keysSecret", name, "Secret with the keys of clients.", origin=origin)
        sources.append({"secret": {"name": secret, "items": shared}})
    for name, client in sorted(given.items()):
        if client.secret is not None:
            sources.append(
                {"secret": {"name": client.secret.name, "items": [{"key": client.secret.key, "path": name}]}}
            )
    return sources


def _engine_keys(resolution: EndpointResolution) -> list[Tree]:
    """Return the Secrets with the keys that Topologies require, each as a file with the name of its Topology."""
    sources: list[Tree] = []
    for backend in resolution.backends:
        auth = backend.topology.spec.auth
        if auth is not None and auth.secret is not None:
            sources.append({"secret": {"name": auth.secret.name, "items": [{"key": auth.key, "path": backend.name}]}})
    return sources


def _clusters(resolution: EndpointResolution) -> Expr:
    """Return the argument with the Services of the Topologies, and with the own pods."""
    parts: list[str | Expr] = []
    text, end = dns_clusters(_MARK).split(_MARK)
    hosts: list[tuple[str, Expr, int, dict[str, bool]]] = [(PEERS, Release(_PODS), PORT, {})]
    for backend in resolution.backends:
        key, port = settings.key(backend.name), backend.topology.spec.service.port
        host = _service(f"topologies.{key}", backend.service, backend)
        hosts.append((topology_cluster(backend.name), host, port, {"split": True} if backend.weight else {}))
        if backend.weight:
            host = _service(f"canaries.{key}", backend.canary, backend)
            hosts.append((canary_cluster(backend.name), host, port, {"split": True, "checked": True}))
    for name, host, port, options in hosts:
        start, after = dns_cluster(name, _MARK, port, idle=_IDLE, **options).split(_MARK)
        assert isinstance(host, Expr)
        parts += [text + start, host]
        text = f"{after}, "
    return Joined((*parts, text.removesuffix(", ") + end))


def _service(key: str, name: str, backend: Backend) -> Expr:
    """Return the setting with the name of the Service of a Topology."""
    return other_name(key, f"Service of the Topology `{name}`", name, name, origin=backend.path)
