"""Replicas that follow the load, and how many of them may be away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kaigen.catalog.engines import Engine
from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.expressions import Expr, Joined, JsonText, Namespace, Release, Setting, Text, Tree
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.serving import Autoscale, Disruption

_ORIGIN = ("spec", "autoscale")
_TARGETS: Mapping[str, int] = {"waiting": 5, "running": 16, "cache": 80, "cpu": 80}
_IDLE = "5m"
_LONGEST_WINDOW = 3600
"""Longest stabilization window of a HorizontalPodAutoscaler, in seconds (source: autoscaling/v2)."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is scaled.

    Attributes:
        api_version: of the workload.
        kind: of the workload.
        engine: what it runs.
    """

    api_version: str
    kind: str
    engine: Engine


def is_keda(autoscale: Autoscale) -> bool:
    """Whether KEDA scales, rather than a HorizontalPodAutoscaler alone."""
    return (autoscale.scaler or ("keda" if autoscale.prometheus else "hpa")) == "keda"


def scaler(frame: Frame, autoscale: Autoscale, target: Target) -> Object:
    """The HorizontalPodAutoscaler or ScaledObject.

    Raises:
        ProblemError: when the scaler cannot do what is asked for.
    """
    if autoscale.min > autoscale.max:
        raise ProblemError(
            "KG0348",
            f"`autoscale.min` is {autoscale.min}, above `max`, {autoscale.max}",
            (*_ORIGIN, "min"),
        )
    return _scaled_object(frame, autoscale, target) if is_keda(autoscale) else _hpa(frame, autoscale, target)


def _bounds(autoscale: Autoscale) -> tuple[Tree, Tree]:
    return (
        settings.count("autoscaling.min", autoscale.min, "Fewest replicas.", origin=(*_ORIGIN, "min")),
        settings.count("autoscaling.max", autoscale.max, "Most replicas.", origin=(*_ORIGIN, "max")),
    )


def _target(autoscale: Autoscale, default: int) -> Setting:
    return settings.count(
        "autoscaling.target",
        autoscale.target or default,
        "Value of the metric that replicas are added above; of a share, in percent.",
        origin=(*_ORIGIN, "target"),
    )


def _metric_name(autoscale: Autoscale, engine: Engine) -> str:
    name = engine.metrics.get(autoscale.metric)
    if name is None:
        known = ", ".join(f"`{metric}`" for metric in [*engine.metrics, "cpu"])
        raise ProblemError(
            "KG0348",
            f"engine `{engine.name}` has no metric that tells `{autoscale.metric}`",
            (*_ORIGIN, "metric") if "metric" in autoscale.model_fields_set else _ORIGIN,
            f"it has {known}; KEDA takes any PromQL in `query`",
        )
    return name


def _refuse(autoscale: Autoscale, field: str, name: str, message: str, hint: str) -> None:
    if name in autoscale.model_fields_set:
        raise ProblemError("KG0348", message, (*_ORIGIN, field), hint)


def _window(autoscale: Autoscale) -> int:
    return min(seconds(autoscale.idle_after or _IDLE), _LONGEST_WINDOW)


def _hpa(frame: Frame, autoscale: Autoscale, target: Target) -> Object:
    if autoscale.min == 0:
        raise ProblemError(
            "KG0349",
            "a HorizontalPodAutoscaler cannot scale to zero",
            (*_ORIGIN, "min"),
            "KEDA can: give it `prometheus` and a `query` that sees demand while no pod runs",
        )
    for field, name in (("query", "query"), ("prometheus", "prometheus")):
        _refuse(autoscale, field, name, f"a HorizontalPodAutoscaler asks no `{field}`", "set `scaler: keda`")
    if seconds(autoscale.idle_after) > _LONGEST_WINDOW:
        raise ProblemError(
            "KG0348",
            "a HorizontalPodAutoscaler waits one hour at most",
            (*_ORIGIN, "idleAfter"),
            "write `1h`",
        )
    least, most = _bounds(autoscale)
    value = _target(autoscale, _TARGETS[autoscale.metric])
    metric: dict[str, Tree]
    if autoscale.metric == "cpu":
        _refuse(autoscale, "podMetric", "pod_metric", "`cpu` is no metric of pods' own", "leave it out")
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": value}},
        }
    else:
        # A share is a fraction of 1, of which a percent is 10 thousandths.
        average: Expr = Joined((Text(value), "0m")) if autoscale.metric == "cache" else JsonText(value)
        name = autoscale.pod_metric or _metric_name(autoscale, target.engine)
        metric = {
            "type": "Pods",
            "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": average}},
        }
    return Object(
        role="horizontalpodautoscaler",
        wave=3,
        body={
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": frame.metadata("", "scaling", wave=3),
            "spec": {
                "scaleTargetRef": _reference(target),
                "minReplicas": least,
                "maxReplicas": most,
                "metrics": [metric],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": _window(autoscale)}},
            },
        },
    )


def _reference(target: Target) -> dict[str, Tree]:
    return {"apiVersion": target.api_version, "kind": target.kind, "name": Release()}


def _scaled_object(frame: Frame, autoscale: Autoscale, target: Target) -> Object:
    _refuse(
        autoscale,
        "podMetric",
        "pod_metric",
        "KEDA asks Prometheus, not the custom metrics API",
        "use `query`",
    )
    if autoscale.min == 0 and autoscale.query is None:
        raise ProblemError(
            "KG0349",
            "nothing would wake it from zero: a metric of its own pods is not there while none runs",
            (*_ORIGIN, "min"),
            "give a `query` for demand in front of the pods, such as requests at the gateway",
        )
    least, most = _bounds(autoscale)
    spec: dict[str, Tree] = {
        "scaleTargetRef": _reference(target),
        "minReplicaCount": least,
        "maxReplicaCount": most,
        "pollingInterval": 15,
        "cooldownPeriod": seconds(autoscale.idle_after or _IDLE),
        "advanced": {
            "horizontalPodAutoscalerConfig": {
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": _window(autoscale)}}
            }
        },
        "triggers": [_trigger(autoscale, target)],
    }
    return Object(
        role="scaledobject",
        wave=3,
        body={
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": frame.metadata("", "scaling", wave=3),
            "spec": spec,
        },
    )


def _trigger(autoscale: Autoscale, target: Target) -> dict[str, Tree]:
    if autoscale.metric == "cpu" and autoscale.query is None:
        _refuse(autoscale, "prometheus", "prometheus", "the metric `cpu` needs no Prometheus", "leave it out")
        value = _target(autoscale, _TARGETS["cpu"])
        return {"type": "cpu", "metricType": "Utilization", "metadata": {"value": Text(value)}}
    if autoscale.prometheus is None:
        raise ProblemError(
            "KG0348", "KEDA must be told which Prometheus it asks", _ORIGIN, "add `prometheus: {address: …}`"
        )
    query: Tree
    if autoscale.query is not None:
        if "metric" in autoscale.model_fields_set:
            raise ProblemError(
                "KG0348", "`query` stands in place of `metric`", (*_ORIGIN, "metric"), "leave one of them out"
            )
        if autoscale.target is None:
            raise ProblemError(
                "KG0348", "a `query` needs a `target`: the share of its value that one replica bears", _ORIGIN
            )
        query = autoscale.query
        value = _target(autoscale, autoscale.target)
    else:
        name = _metric_name(autoscale, target.engine)
        scale = " * 100" if autoscale.metric == "cache" else ""
        query = Joined((f'sum({name}{{namespace="', Namespace(), '",pod=~"', Release(), f'-.+"}}){scale}'))
        value = _target(autoscale, _TARGETS[autoscale.metric])
    trigger: dict[str, Tree] = {
        "type": "prometheus",
        "metadata": {
            "serverAddress": settings.text(
                "autoscaling.prometheus",
                autoscale.prometheus.address,
                "Address of the Prometheus that is asked.",
                origin=(*_ORIGIN, "prometheus", "address"),
            ),
            "query": query,
            "threshold": Text(value),
        },
    }
    if autoscale.prometheus.trigger_authentication:
        trigger["authenticationRef"] = {"name": autoscale.prometheus.trigger_authentication}
    return trigger


def disruption_budget(frame: Frame, disruption: Disruption | None, nodes: int) -> Object:
    """How many pods may be away when nodes are drained.

    Args:
        frame: the app.
        disruption: what the spec asks for, in copies; one copy may be away for None.
        nodes: pods of one copy. When one of them goes, the others of its copy go too.
    """
    field, path, amount = "maxUnavailable", "maxUnavailable", 1
    doc = "Pods that may be away when nodes are drained."
    value: int | str = amount
    if disruption is not None and disruption.min_available is not None:
        field, path, doc = "minAvailable", "minAvailable", "Pods that must stay when nodes are drained."
        value = disruption.min_available
        value = value * nodes if isinstance(value, int) else value
    elif disruption is not None and disruption.max_unavailable is not None:
        value = disruption.max_unavailable
        # The first pod of a copy takes the rest of it along.
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
                "selector": {"matchLabels": frame.selector()},
            },
        },
    )
