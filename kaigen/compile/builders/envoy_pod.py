"""The pods of a proxy: Envoy's container, and the Deployment and budget of its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.envoy import READY, Config
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.pods import NO_NETWORK, container_security, image_fields
from kaigen.compile.builders.workloads import WAVE
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Joined, Setting, Tree
from kaigen.compile.go_json import go_json

MEMORY = "$(MEMORY_LIMIT)"
"""The limit of the container in bytes: a variable that the kubelet replaces in arguments."""

_REFUSES, _ENDS = 0.35, 0.4
"""Shares of the limit from which Envoy refuses requests, and ends those whose body it still reads.

One that it has read grows to two and a half times its size while it is sent on, so that all together still fit.
"""


MEMORY_REF = {"resource": "limits.memory", "divisor": "0"}
"""The limit in bytes. The API server sets this divisor where there is none, and Argo CD would see a difference."""


def overload() -> Config:
    """Return the field of Envoy's configuration by which it refuses requests before its pod is killed for its memory.

    Source of the names: docs/root/configuration/operations/overload_manager of Envoy.
    """
    heap, types = "envoy.resource_monitors.fixed_heap", "type.googleapis.com/envoy"

    def above(name: str, share: float) -> Config:
        return {"name": f"envoy.{name}", "triggers": [{"name": heap, "threshold": {"value": share}}]}

    monitor = {"@type": f"{types}.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig"}
    shrink = {"@type": f"{types}.config.overload.v3.ShrinkHeapConfig", "timer_interval": "1s"}
    return {
        "refresh_interval": "0.05s",
        "resource_monitors": [{"name": heap, "typed_config": {**monitor, "max_heap_size_bytes": MEMORY}}],
        "actions": [{**above("overload_actions.shrink_heap", 0.2), "typed_config": shrink}],
        "loadshed_points": [
            above("load_shed_points.http_connection_manager_decode_headers", _REFUSES),
            above("load_shed_points.http1_server_abort_dispatch", _ENDS),
            above("load_shed_points.http2_server_go_away_and_close_on_dispatch", _ENDS),
        ],
    }


def envoy_container(
    context: Context,
    prefix: str,
    whose: str,
    *,
    folder: str,
    clusters: Expr,
    port: int,
    drain: int,
    mounts: Sequence[Mapping[str, Tree]],
    memory: str = "512Mi",
) -> dict[str, Tree]:
    """Return the container of Envoy.

    Args:
        context: has the image.
        prefix: beginning of the paths of its settings.
        whose: what it belongs to, for the texts of settings.
        folder: folder with envoy.yaml.
        clusters: argument of `--config-yaml`, without the limit of its memory.
        port: port of requests.
        drain: seconds that it goes on when its pod ends.
        mounts: its volume mounts.
        memory: limit of its memory.
    """
    return {
        "name": "envoy",
        **NO_NETWORK,
        **image_fields(context.config.images["envoy"], f"{prefix}envoy.", ()),
        "command": ["envoy"],
        # Envoy reads no `--flag=value`.
        "args": [
            *("--config-path", f"{folder}/envoy.yaml"),
            *("--config-yaml", Joined(("{", clusters, f", overload_manager: {go_json(overload())}}}"))),
            *("--disable-hot-restart", "--concurrency", "2", "--log-level", "warning"),
        ],
        "env": [{"name": "MEMORY_LIMIT", "valueFrom": {"resourceFieldRef": MEMORY_REF}}],
        "ports": [container_port("http", port), container_port("envoy-metrics", READY)],
        **proxy_resources(f"{prefix}envoy.", f"{whose} envoy", "100m", "128Mi", memory),
        "readinessProbe": {**_ready(), "periodSeconds": 2, "failureThreshold": 2},
        "livenessProbe": {**_ready(), "periodSeconds": 10, "failureThreshold": 6},
        **ending(drain),
        "volumeMounts": list(mounts),
    }


def ending(drain: int) -> dict[str, Tree]:
    """Return fields of a container: answers go on while the pod ends, and new requests are still answered."""
    return {
        "lifecycle": {"preStop": {"sleep": {"seconds": max(1, drain)}}},
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def proxy_resources(prefix: str, what: str, cpu: str, memory: str, limit: str) -> dict[str, Tree]:
    """Return the resources of a container, as a setting."""
    given = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}}
    return {"resources": Setting(f"{prefix}resources", given, f"Resources of {what}.", settings.RESOURCES)}


def container_port(name: str, number: int) -> dict[str, Tree]:
    """Return a port of a container."""
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def _ready() -> dict[str, Tree]:
    return {"httpGet": {"path": "/ready", "port": READY}, "timeoutSeconds": 5}


def over_nodes(frame: Frame, component: str) -> Tree:
    """Return the constraint that spreads the pods of a component over nodes where it can."""
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": frame.selector(component)},
    }


def proxy_deployment(frame: Frame, component: str, suffix: str, replicas: Tree, pod: Mapping[str, Tree]) -> Object:
    """Return the Deployment of a proxy: a new pod is ready before an old one ends.

    Args:
        frame: the app.
        component: value of the component label.
        suffix: end of its name.
        replicas: number of pods.
        pod: the pod's spec.
    """
    return Object(
        role=f"deployment{suffix}",
        wave=WAVE,
        body={
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": frame.metadata(suffix, component, wave=WAVE),
            "spec": {
                "replicas": replicas,
                "revisionHistoryLimit": 3,
                "selector": {"matchLabels": frame.selector(component)},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "template": {"metadata": frame.pod_metadata(component, {}), "spec": dict(pod)},
            },
        },
    )


def budget(frame: Frame, component: str, suffix: str) -> Object:
    """Return the PodDisruptionBudget of a proxy: one pod at a time."""
    return Object(
        role=f"poddisruptionbudget{suffix}",
        wave=WAVE,
        body={
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": frame.metadata(suffix, component, wave=WAVE),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": frame.selector(component)}},
        },
    )
