"""How many replicas of a Topology run: the scaler and the disruption budget."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.autoscaling import ACTIVE_METRIC, LONGEST_WINDOW, ORIGIN, Autoscaling
from kaigen.compile.builders.envoy import READY, STATISTICS
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.workloads import POD_SUFFIX, autoscaling_switch
from kaigen.compile.expressions import Expr, Joined, JsonText, Namespace, Release, Setting, Text, Tree
from kaigen.compile.field_expressions import Items
from kaigen.compile.topology.resolution import TopologyResolution
from kaigen.compile.topology.router_config import (
    OF_CLIENTS,
    QUEUE_METRIC,
    ROUTER,
    ROUTER_SUFFIX,
)
from kaigen.kinds.operation import Autoscale, Disruption, MetricsServer
from kaigen.kinds.topology import TopologySpec

_WAVE = 3
_TARGETS: Mapping[str, int] = {"waiting": 5, "running": 16, "cache": 80, "cpu": 80}
_IDLE = "5m"

POLLING = 15
"""Interval at which KEDA asks for the load, in seconds."""

_SCRAPE = 30
"""Interval at which Prometheus reads metrics, in seconds, where the spec says none.

Source: the default of `ScrapeInterval` in pkg/apis/monitoring/v1/prometheus_types.go of the Prometheus operator 0.88.0.
"""


def scrape_seconds(resolution: TopologyResolution) -> int:
    """Return the interval at which Prometheus reads what an autoscaler follows; 0 if KEDA asks the router itself."""
    autoscale, monitoring = resolution.spec.autoscale, resolution.spec.monitoring
    if autoscale is None or autoscale.prometheus is None:
        return 0
    return seconds(monitoring.interval) if monitoring is not None and monitoring.interval else _SCRAPE


def scaling_objects(resolution: TopologyResolution, workload: Object) -> list[Object]:
    """Return the objects that keep enough replicas of a workload running."""
    frame, objects = resolution.frame, []
    if resolution.max_replicas > 1:
        nodes = resolution.parallelism.nodes
        budget = disruption_budget(frame, resolution.spec.disruption, nodes, engine_pods(frame, resolution.spec))
        objects.append(budget)
    if resolution.autoscaling is not None:
        objects.append(autoscaler(frame, resolution.autoscaling, workload, resolution.startup))
    return objects


def engine_pods(frame: Frame, spec: TopologySpec) -> dict[str, Tree]:
    """Return the selector of all pods of an app but those of its router."""
    pods: dict[str, Tree] = {"matchLabels": frame.selector()}
    if spec.router is not None:
        other = {"key": "app.kubernetes.io/component", "operator": "NotIn", "values": [ROUTER]}
        pods["matchExpressions"] = [other]
    return pods


def autoscaler(frame: Frame, autoscaling: Autoscaling, workload: Object, startup: int) -> Object:
    """Return the HorizontalPodAutoscaler or ScaledObject of a workload.

    Args:
        frame: the app.
        autoscaling: how replicas follow the load.
        workload: the object that is scaled.
        startup: longest time until a pod is ready, in seconds.
    """
    reference: dict[str, Tree] = {"apiVersion": workload.body["apiVersion"], "kind": workload.kind, "name": Release()}
    if autoscaling.keda:
        return _scaled_object(frame, autoscaling, reference, startup)
    return _hpa(frame, autoscaling, reference)


def _bounds(autoscale: Autoscale) -> tuple[Tree, Tree]:
    return (
        settings.count("autoscaling.min", autoscale.min, "Minimum number of replicas.", origin=(*ORIGIN, "min")),
        settings.count("autoscaling.max", autoscale.max, "Maximum number of replicas.", origin=(*ORIGIN, "max")),
    )


def _target(autoscale: Autoscale) -> Setting:
    return settings.count(
        "autoscaling.target",
        autoscale.target or _TARGETS[autoscale.metric],
        "Value of the metric above which replicas are added; in percent for a ratio.",
        origin=(*ORIGIN, "target"),
    )


def _window(autoscale: Autoscale) -> int:
    return min(seconds(autoscale.idle_after or _IDLE), LONGEST_WINDOW)


def _hpa(frame: Frame, autoscaling: Autoscaling, reference: dict[str, Tree]) -> Object:
    autoscale = autoscaling.spec
    least, most = _bounds(autoscale)
    value = _target(autoscale)
    metric: dict[str, Tree]
    if not autoscaling.metric_name:
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": value}},
        }
    else:
        # A share is a fraction of 1; one percent is 10 thousandths.
        average: Expr = Joined((Text(value), "0m")) if autoscale.metric == "cache" else JsonText(value)
        metric = {
            "type": "Pods",
            "pods": {
                "metric": {"name": autoscaling.metric_name},
                "target": {"type": "AverageValue", "averageValue": average},
            },
        }
    return Object(
        role="horizontalpodautoscaler",
        wave=_WAVE,
        when=autoscaling_switch(),
        body={
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": frame.metadata("", "scaling", wave=_WAVE),
            "spec": {
                "scaleTargetRef": reference,
                "minReplicas": least,
                "maxReplicas": most,
                "metrics": [metric],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": _window(autoscale)}},
            },
        },
    )


def _scaled_object(frame: Frame, autoscaling: Autoscaling, reference: dict[str, Tree], startup: int) -> Object:
    autoscale = autoscaling.spec
    least, most = _bounds(autoscale)
    cooldown = seconds(autoscale.idle_after or _IDLE)
    spec: dict[str, Tree] = {
        "scaleTargetRef": reference,
        "minReplicaCount": least,
        "maxReplicaCount": most,
        "pollingInterval": POLLING,
        "cooldownPeriod": cooldown,
        # A new workload starts with one pod; without this, KEDA stops it at once, while it loads.
        **({"initialCooldownPeriod": startup + cooldown} if autoscale.min == 0 else {}),
        **_fallback(autoscale),
        "advanced": {
            "horizontalPodAutoscalerConfig": {
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": _window(autoscale)}}
            }
        },
        "triggers": _triggers(autoscaling, str(reference["kind"])),
    }
    return Object(
        role="scaledobject",
        wave=_WAVE,
        when=autoscaling_switch(),
        body={
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": frame.metadata("", "scaling", wave=_WAVE),
            "spec": spec,
        },
    )


def _triggers(autoscaling: Autoscaling, kind: str) -> Tree:
    windows = autoscaling.spec.schedule
    load: tuple[Tree, ...] = (_trigger(autoscaling, kind),) if autoscaling.by_load else ()
    if autoscaling.held:
        load = (*load, *_held_triggers(autoscaling, kind))
    if windows is None:
        return list(load)
    times = settings.objects(
        "autoscaling.schedule",
        [
            {
                "type": "cron",
                "metadata": {
                    "timezone": window.time_zone,
                    "start": window.start,
                    "end": window.end,
                    "desiredReplicas": str(window.replicas),
                },
            }
            for window in windows
        ],
        "Triggers of KEDA for times with more replicas.",
        origin=(*ORIGIN, "schedule"),
    )
    return Items(None, load, times) if load else times


_FAILURES = 4
"""Failed questions in a row, one every 15 seconds. A workload that KEDA may stop falls back at the first one.

Source: `RequestScale` in pkg/scaling/executor/scale_scaledobjects.go of KEDA 2.16.1.
"""


def _fallback(autoscale: Autoscale) -> dict[str, Tree]:
    """Return the field with the replicas while the metric cannot be read; none by default."""
    if autoscale.fallback is None:
        return {}
    replicas = settings.count(
        "autoscaling.fallback",
        autoscale.fallback,
        "Replicas while Prometheus cannot be read.",
        origin=(*ORIGIN, "fallback"),
    )
    return {"fallback": {"failureThreshold": _FAILURES, "replicas": replicas}}


def _trigger(autoscaling: Autoscaling, kind: str) -> dict[str, Tree]:
    autoscale, name = autoscaling.spec, autoscaling.metric_name
    value = _target(autoscale)
    if autoscale.prometheus is None:
        return {"type": "cpu", "metricType": "Utilization", "metadata": {"value": Text(value)}}
    scale = " * 100" if autoscale.metric == "cache" else ""
    query: Tree = autoscale.query
    if query is None:
        query = _sum(name, f"-{POD_SUFFIX[kind]}", scale)
    return _prometheus_trigger(autoscale.prometheus, query, Text(value))


def _sum(metric: str, pods: str, scale: str = "", *, label: str = "") -> Tree:
    """Return the query for the sum of a metric over the pods whose names end as given."""
    more = f",{label}" if label else ""
    return Joined((f'sum({metric}{{namespace="', Namespace(), '",pod=~"', Release(), f'{pods}"{more}}}){scale}'))


def _held_triggers(autoscaling: Autoscaling, kind: str) -> tuple[Tree, ...]:
    """Return triggers on the requests that the router holds; and on those that run, so that none stops its last pod."""
    if autoscaling.held == "envoy":
        return (_envoy_trigger(autoscaling),)
    autoscale, server = autoscaling.spec, autoscaling.spec.prometheus
    if server is None:
        return ()
    queue = _sum(QUEUE_METRIC, f"{ROUTER_SUFFIX}-{POD_SUFFIX['Deployment']}")
    triggers = [_prometheus_trigger(server, queue, str(_TARGETS["waiting"]))]
    running = autoscaling.metrics.get("running")
    if autoscale.min == 0 and autoscale.metric != "running" and running:
        query = _sum(running, f"-{POD_SUFFIX[kind]}")
        triggers.append(_prometheus_trigger(server, query, str(_TARGETS["running"])))
    return tuple(triggers)


def _envoy_trigger(autoscaling: Autoscaling) -> dict[str, Tree]:
    """Return the trigger on the requests that Envoy has not answered, read from Prometheus or from each router.

    Source of the fields: pkg/scalers/metrics_api_scaler.go of KEDA 2.21.0.
    """
    autoscale = autoscaling.spec
    target: Tree = str(_TARGETS["waiting"]) if autoscaling.by_load else Text(_target(autoscale))
    if autoscale.prometheus is not None:
        pods = f"{ROUTER_SUFFIX}-{POD_SUFFIX['Deployment']}"
        return _prometheus_trigger(autoscale.prometheus, _sum(ACTIVE_METRIC, pods, label=OF_CLIENTS), target)
    metadata: dict[str, Tree] = {
        "url": Joined(("http://", Release(ROUTER_SUFFIX), ".", Namespace(), f".svc:{READY}{STATISTICS}")),
        "format": "prometheus",
        "valueLocation": f"{ACTIVE_METRIC}{{{OF_CLIENTS}}}",
        "aggregateFromKubeServiceEndpoints": "true",
        "aggregationType": "sum",
        "targetValue": target,
    }
    return {"type": "metrics-api", "metadata": metadata}


def _prometheus_trigger(server: MetricsServer, query: Tree, threshold: Tree) -> dict[str, Tree]:
    metadata: dict[str, Tree] = {
        "serverAddress": settings.text(
            "autoscaling.prometheus",
            server.address,
            "Address of the Prometheus server to query.",
            origin=(*ORIGIN, "prometheus", "address"),
        ),
        "query": query,
        "threshold": threshold,
    }
    # KEDA ignores the parameters of a TriggerAuthentication that no mode uses.
    if server.auth_modes:
        metadata["authModes"] = ",".join(server.auth_modes)
    trigger: dict[str, Tree] = {"type": "prometheus", "metadata": metadata}
    if server.trigger_authentication:
        trigger["authenticationRef"] = {"name": server.trigger_authentication}
    return trigger


def disruption_budget(frame: Frame, disruption: Disruption | None, nodes: int, pods: Tree) -> Object:
    """Return the budget of pods that may be unavailable while nodes are drained.

    Args:
        frame: the app.
        disruption: the spec's block, in replicas; None for one replica.
        nodes: pods of one replica; when one stops, all of them stop.
        pods: selector of the pods.
    """
    field, path, amount = "maxUnavailable", "maxUnavailable", 1
    doc = "Pods that may be unavailable while nodes are drained."
    value: int | str = amount
    if disruption is not None and disruption.min_available is not None:
        field, path, doc = ("minAvailable", "minAvailable", "Pods that must stay available while nodes are drained.")
        value = disruption.min_available
        value = value * nodes if isinstance(value, int) else value
    elif disruption is not None and disruption.max_unavailable is not None:
        value = disruption.max_unavailable
        # The first pod of a replica that stops also stops the others.
        value = max(0, (value - 1) * nodes + 1) if isinstance(value, int) else value
    return Object(
        role="poddisruptionbudget",
        wave=3,
        body={
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": frame.metadata("", "scaling", wave=3),
            "spec": {
                field: Setting(
                    f"disruption.{path}",
                    value,
                    doc,
                    {"type": ["integer", "string"]},
                    origin=("spec", "disruption", field) if disruption else (),
                ),
                "selector": pods,
            },
        },
    )
