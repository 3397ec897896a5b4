"""The router of a Topology: Envoy in front of the pods that serve, and for vLLM an endpoint picker in the same pod.

Each pod of the router has a picker of its own, which only its Envoy asks, on the loopback interface. So no picker is on
standby, and none has to be elected.
"""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import role_and_binding, token_mount, token_volume
from kaigen.compile.builders.envoy import READY, STATISTICS, Config
from kaigen.compile.builders.envoy_pod import (
    MEMORY_REF,
    budget,
    container_port,
    ending,
    envoy_container,
    over_nodes,
    proxy_deployment,
    proxy_resources,
)
from kaigen.compile.builders.envoy_telemetry import with_traces
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.network import headless_service, network_switch, pod_monitor
from kaigen.compile.builders.pods import NO_NETWORK, image_fields, pod_security
from kaigen.compile.builders.routes import router_pool
from kaigen.compile.builders.workloads import SERVE
from kaigen.compile.engines.arguments import KEY_FOLDER, key_mount, key_volume
from kaigen.compile.expressions import DIGEST_LENGTH, Joined, Namespace, Release, Tree
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.topology.networking import clients_of
from kaigen.compile.topology.pod import image_pull_secrets
from kaigen.compile.topology.resolution import TopologyResolution
from kaigen.compile.topology.router_config import (
    GRPC,
    GRPC_HEALTH,
    METRICS,
    PORT,
    ROUTER,
    ROUTER_SUFFIX,
    engines_cluster,
    envoy_config,
    picker_config,
    plain_config,
)
from kaigen.compile.topology.scaling import engine_pods
from kaigen.core.json_types import JsonObject
from kaigen.kinds.blocks import Security
from kaigen.kinds.exposure import Auth, Router
from kaigen.yaml.dump import dump

_VOLUME, _FOLDER = "router", "/etc/kaigen/router"
_ENGINES = "-engines"
_ORIGIN = ("spec", "router")
_SCRAPE_SECONDS = 120


def held_seconds(resolution: TopologyResolution, router: Router) -> int:
    """Return how long a router holds requests that no pod can take; 0 for not at all."""
    if router.hold is not None:
        return seconds(router.hold)
    autoscale = resolution.spec.autoscale
    return resolution.startup + _SCRAPE_SECONDS if autoscale is not None and autoscale.min == 0 else 0


def router_objects(resolution: TopologyResolution) -> list[Object]:
    """Return the objects of the router; nothing without one."""
    router, frame = resolution.spec.router, resolution.frame
    if router is None:
        return []
    picks = resolution.has_picker
    files = _files(resolution, router)
    config = Release(f"{ROUTER_SUFFIX}-{sha256_hex(go_json(files))[:DIGEST_LENGTH]}")
    metadata = frame.metadata("", ROUTER, name=config)
    objects = [
        Object(
            role="configmap-router",
            body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**files}},
        ),
        *(_access(resolution) if picks else ()),
        *_policies(resolution, router),
        headless_service(
            frame, SERVE, resolution.port, role="service-engines", name="http", suffix=_ENGINES, ready=True
        ),
        *(_pool(resolution, router) if picks else _counted(resolution)),
        _deployment(resolution, router, config),
    ]
    if router.replicas > 1:
        objects.append(budget(resolution.frame, ROUTER, ROUTER_SUFFIX))
    if resolution.spec.monitoring is not None:
        objects.append(_monitor(resolution))
    return objects


def _pool(resolution: TopologyResolution, router: Router) -> list[Object]:
    """Return the pool that the picker reads, and the Service of the picker."""
    frame, fail_open = resolution.frame, router.failure_mode == "open"
    picker = (Release(ROUTER_SUFFIX), GRPC)
    asked = {"metrics": READY} if _asks_router(resolution) else {}
    return [
        headless_service(
            frame, ROUTER, GRPC, role="service-router", name="grpc", suffix=ROUTER_SUFFIX, ready=True, further=asked
        ),
        router_pool(frame, SERVE, resolution.port, picker=picker, fail_open=fail_open),
    ]


def _counted(resolution: TopologyResolution) -> list[Object]:
    """Return the Service by which KEDA finds the pods of the router, to ask each for the number of its requests."""
    if not _asks_router(resolution):
        return []
    found = headless_service(
        resolution.frame, ROUTER, READY, role="service-router", name="metrics", suffix=ROUTER_SUFFIX, ready=True
    )
    return [found]


def _asks_router(resolution: TopologyResolution) -> bool:
    """Whether KEDA asks the pods of the router, and not Prometheus."""
    autoscaling = resolution.autoscaling
    return autoscaling is not None and autoscaling.held == "envoy" and autoscaling.spec.prometheus is None


def _files(resolution: TopologyResolution, router: Router) -> dict[str, str]:
    spec, hold = resolution.spec, held_seconds(resolution, router)
    auth = _keys(resolution)
    keys = f"{KEY_FOLDER}/{auth.key}" if auth is not None else ""
    if not resolution.has_picker:
        sums = spec.auth.sha256 if spec.auth is not None else None
        config = plain_config(keys=keys, hold=hold, sums=sums or (), session=_session(router))
        return {"envoy.yaml": dump(_traced(config, resolution))}
    config = envoy_config(keys=keys, fail_open=router.failure_mode == "open", hold=hold)
    return {
        "envoy.yaml": dump(_traced(config, resolution)),
        "picker.yaml": dump(picker_config(router.policy, adapters=bool(spec.adapters), hold=hold)),
    }


def _session(router: Router) -> str:
    """Return the header by which requests stay with a replica; empty for none."""
    return router.session_header if router.policy == "session" else ""


def _traced(config: Config, resolution: TopologyResolution) -> Config:
    """Return the configuration of an Envoy that sends its traces to where the engine sends its own."""
    monitoring = resolution.spec.monitoring
    traces = monitoring.traces if monitoring is not None else None
    return with_traces(config, traces, f"{resolution.metadata.name}{ROUTER_SUFFIX}")


def _keys(resolution: TopologyResolution) -> Auth | None:
    """Return the API keys that Envoy checks; None without a Secret that has them."""
    auth = resolution.spec.auth
    return auth if auth is not None and auth.secret is not None else None


def _access(resolution: TopologyResolution) -> list[Object]:
    """Return the ServiceAccount, and what the picker reads: its pool, the pods in it, and what others say about them.

    It watches the last two only where the cluster has the kinds (pkg/epp/server/controller_config.go).
    """
    frame, account = resolution.frame, Release(ROUTER_SUFFIX)
    read: Tree = ["get", "list", "watch"]
    rules: list[Tree] = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": read},
        {"apiGroups": ["inference.networking.k8s.io"], "resources": ["inferencepools"], "verbs": read},
        {
            "apiGroups": ["inference.networking.x-k8s.io"],
            "resources": ["inferencemodelrewrites", "inferenceobjectives"],
            "verbs": read,
        },
    ]
    made = Object(
        role="serviceaccount-router",
        body={
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": frame.metadata(ROUTER_SUFFIX, ROUTER),
            "automountServiceAccountToken": False,
        },
    )
    return [made, *role_and_binding(frame, ROUTER_SUFFIX, ROUTER, rules, account, role_suffix="-router")]


def _policies(resolution: TopologyResolution, router: Router) -> list[Object]:
    """Return the policies: clients reach only the router, and only the router reaches the pods that serve."""
    frame = resolution.frame
    router_pods: Tree = {"podSelector": {"matchLabels": frame.selector(ROUTER)}}
    monitored = resolution.spec.monitoring is not None
    every: Sequence[JsonObject] = [{"namespaceSelector": {}}]
    asked = monitored or _asks_router(resolution)
    peers = router.metrics_from or (every if asked else [])
    metrics = settings.objects(
        "networkPolicy.metricsFrom",
        peers,
        "Who may read metrics, as NetworkPolicy peers; empty for everyone.",
        origin=(*_ORIGIN, "metricsFrom"),
    )
    clients = settings.objects(
        "networkPolicy.from",
        clients_of(resolution),
        "Clients that may connect, as NetworkPolicy peers; empty for everyone.",
        origin=("spec", "service", "allowFrom"),
    )
    port: Tree = {"port": resolution.port, "protocol": "TCP"}
    own: list[Tree] = [{"from": [router_pods], "ports": [port]}]
    if resolution.parallelism.nodes > 1:
        own.append({"from": [{"podSelector": engine_pods(frame, resolution.spec)}]})
    further = resolution.engine.data_ports(resolution.spec, resolution.parallelism)
    if further:
        own.append({"from": [router_pods], "ports": [*further]})
    front: list[Tree] = [{"ports": [{"port": PORT, "protocol": "TCP"}], "from": clients}]
    if peers:
        if monitored or not _asks_router(resolution):
            own.append({"ports": [port], "from": metrics})
        ports = (METRICS, READY) if resolution.has_picker else (READY,)
        front.append({"ports": [{"port": each, "protocol": "TCP"} for each in ports], "from": metrics})
    return [
        _policy(resolution, "networkpolicy", "", engine_pods(frame, resolution.spec), own),
        _policy(resolution, "networkpolicy-router", ROUTER_SUFFIX, {"matchLabels": frame.selector(ROUTER)}, front),
    ]


def _policy(resolution: TopologyResolution, role: str, suffix: str, pods: Tree, rules: list[Tree]) -> Object:
    return Object(
        role=role,
        when=network_switch(),
        body={
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": resolution.frame.metadata(suffix, "network"),
            "spec": {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": rules},
        },
    )


def _deployment(resolution: TopologyResolution, router: Router, config: Tree) -> Object:
    auth, picks = _keys(resolution), resolution.has_picker
    drain = seconds(resolution.spec.drain)
    pod: dict[str, Tree] = {
        **({"serviceAccountName": Release(ROUTER_SUFFIX)} if picks else {}),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": drain + 30,
        "imagePullSecrets": image_pull_secrets(resolution),
        "topologySpreadConstraints": [over_nodes(resolution.frame, ROUTER)],
        "securityContext": pod_security(Security()),
        "containers": [_envoy(resolution, router, drain), *([_picker(resolution, drain)] if picks else [])],
        "volumes": [
            {"name": _VOLUME, "configMap": {"name": config}},
            *([token_volume()] if picks else []),
            *([key_volume(auth)] if auth is not None else []),
        ],
    }
    replicas = settings.count("router.replicas", router.replicas, "Pods of the router.", origin=(*_ORIGIN, "replicas"))
    return proxy_deployment(resolution.frame, ROUTER, ROUTER_SUFFIX, replicas, pod)


def _envoy(resolution: TopologyResolution, router: Router, drain: int) -> dict[str, Tree]:
    session, plain = bool(_session(router)), not resolution.has_picker
    start, end = engines_cluster("HOST", resolution.port, plain=plain, session=session).split("HOST")
    return envoy_container(
        resolution.context,
        "router.",
        "the router's",
        folder=_FOLDER,
        clusters=Joined((start, Release(_ENGINES), end)),
        port=PORT,
        drain=drain,
        mounts=[_config_mount(), *([key_mount()] if _keys(resolution) is not None else [])],
        memory="1Gi",
    )


def _picker(resolution: TopologyResolution, drain: int) -> dict[str, Tree]:
    """Return the container of the picker; its flags are in pkg/epp/server/options.go."""
    health: dict[str, Tree] = {"grpc": {"port": GRPC_HEALTH}}
    return {
        "name": "picker",
        **NO_NETWORK,
        **image_fields(resolution.context.config.images["endpointPicker"], "router.picker.", ()),
        "args": [
            Joined(("--pool-name=", Release())),
            Joined(("--pool-namespace=", Namespace())),
            f"--config-file={_FOLDER}/picker.yaml",
            f"--grpc-health-port={GRPC_HEALTH}",
            f"--metrics-port={METRICS}",
            # It listens for the Envoy of its pod, and a NetworkPolicy keeps others from it.
            "--secure-serving=false",
            "--metrics-endpoint-auth=false",
            "--tracing=false",
            "--enable-pprof=false",
            "--refresh-metrics-interval=200ms",
            "--zap-encoder=json",
        ],
        "env": [
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            # Go collects garbage sooner as it comes near.
            {"name": "GOMEMLIMIT", "valueFrom": {"resourceFieldRef": MEMORY_REF}},
        ],
        "ports": [container_port("metrics", METRICS)],
        **proxy_resources("router.picker.", "the router's picker", "100m", "256Mi", "2Gi"),
        "readinessProbe": {**health, "periodSeconds": 2},
        "livenessProbe": {**health, "periodSeconds": 10, "failureThreshold": 6, "initialDelaySeconds": 10},
        **ending(drain),
        "volumeMounts": [_config_mount(), token_mount()],
    }


def _config_mount() -> dict[str, Tree]:
    return {"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}


def _monitor(resolution: TopologyResolution) -> Object:
    monitoring = resolution.spec.monitoring
    assert monitoring is not None
    if not resolution.has_picker:
        return pod_monitor(resolution.frame, ROUTER, monitoring, STATISTICS, port="envoy-metrics", suffix=ROUTER_SUFFIX)
    return pod_monitor(
        resolution.frame,
        ROUTER,
        monitoring,
        "/metrics",
        port="metrics",
        suffix=ROUTER_SUFFIX,
        further={"envoy-metrics": STATISTICS},
    )
