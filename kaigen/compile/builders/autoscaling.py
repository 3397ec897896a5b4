"""Autoscaling settings of a spec, checked: which scaler, and which metric it follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from kaigen.compile.builders.jobs import seconds
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import set_fields
from kaigen.kinds.operation import Autoscale

ORIGIN: FieldPath = ("spec", "autoscale")
Counter = Literal["", "picker", "envoy"]
"""What counts the requests that a router holds."""

ACTIVE_METRIC = "envoy_http_downstream_rq_active"
"""Requests that Envoy has not answered, whether they wait or run."""

LONGEST_WINDOW = 3600
"""Longest stabilization window of a HorizontalPodAutoscaler, in seconds (source: autoscaling/v2)."""


class Autoscaling(Struct, frozen=True):
    """How replicas follow the load.

    Attributes:
        spec: the spec's block.
        keda: whether KEDA scales, rather than a HorizontalPodAutoscaler alone.
        metric_name: name of the metric; empty for CPU and for a query.
        by_load: whether they follow the load, and not only a schedule.
        held: what counts the requests that a router holds, which they follow too: `picker`, `envoy`, or nothing.
        metrics: the engine's metrics by the load that they measure.
    """

    spec: Autoscale
    keda: bool
    metric_name: str
    by_load: bool = True
    held: Counter = ""
    metrics: Mapping[str, str] = {}


def resolve_autoscaling(
    autoscale: Autoscale, metrics: Mapping[str, str], label: str, *, held: Counter = ""
) -> Autoscaling:
    """Return the scaler and its metric.

    Args:
        autoscale: the spec's block.
        metrics: the engine's metrics by the load that they measure.
        label: the engine in messages.
        held: what counts the requests that a router holds while no pod runs; empty without a router.

    Raises:
        ProblemError: the scaler cannot do what the spec asks for.
    """
    if autoscale.min > autoscale.max:
        raise ProblemError(
            "KG0348",
            f"`autoscale.min` is {autoscale.min}, which is greater than `max`, {autoscale.max}",
            (*ORIGIN, "min"),
        )
    if held == "picker" and autoscale.prometheus is None:
        held = "envoy"
    envoy = held == "envoy" and not {"metric", "query", "pod_metric"} & set_fields(autoscale)
    given = autoscale.prometheus or autoscale.schedule or (envoy and autoscale.min == 0)
    keda = (autoscale.scaler or ("keda" if given else "hpa")) == "keda"
    _check_windows(autoscale, keda=keda)
    if keda and autoscale.schedule and not {"metric", "query", "prometheus", "target"} & set_fields(autoscale):
        _reject(autoscale, "fallback", "fallback", "a schedule alone reads no Prometheus", "leave it out")
        return Autoscaling(autoscale, keda, "", by_load=False)
    if keda and envoy:
        # Envoy counts the requests that run, too, so nothing else is followed, and no Prometheus is needed.
        _check_login(autoscale)
        name = ACTIVE_METRIC if autoscale.prometheus is not None else ""
        return Autoscaling(autoscale, keda, name, by_load=False, held=held)
    if keda:
        _check_keda(autoscale, held=bool(held))
        named = autoscale.query is None and autoscale.metric != "cpu"
    else:
        _check_hpa(autoscale)
        named = autoscale.metric != "cpu"
    name = (autoscale.pod_metric or _metric_name(autoscale, metrics, label)) if named else ""
    counter = held if keda and autoscale.query is None else ""
    return Autoscaling(autoscale, keda, name, held=counter, metrics=metrics)


def _metric_name(autoscale: Autoscale, metrics: Mapping[str, str], label: str) -> str:
    name = metrics.get(autoscale.metric)
    if name is None:
        known = ", ".join(f"`{metric}`" for metric in [*metrics, "cpu"])
        raise ProblemError(
            "KG0348",
            f"{label} has no metric for `{autoscale.metric}`",
            (*ORIGIN, "metric") if "metric" in set_fields(autoscale) else ORIGIN,
            f"use {known}, or KEDA with a PromQL `query`",
        )
    return name


def _reject(autoscale: Autoscale, field: str, name: str, message: str, hint: str) -> None:
    if name in set_fields(autoscale):
        raise ProblemError("KG0348", message, (*ORIGIN, field), hint)


def _check_windows(autoscale: Autoscale, *, keda: bool) -> None:
    """Check the schedule as KEDA reads it (source: kedacore/keda v2.21.0, pkg/scalers/cron_scaler.go)."""
    if autoscale.schedule and not keda:
        raise ProblemError(
            "KG0348", "a HorizontalPodAutoscaler has no schedule", (*ORIGIN, "schedule"), "set `scaler: keda`"
        )
    for number, window in enumerate(autoscale.schedule or ()):
        at: FieldPath = (*ORIGIN, "schedule", number)
        if window.start == window.end:
            raise ProblemError("KG0348", "`start` and `end` are the same time", (*at, "end"), "set another `end`")
        if window.replicas > autoscale.max:
            message = f"`replicas` is {window.replicas}, which is greater than `max`, {autoscale.max}"
            raise ProblemError("KG0348", message, (*at, "replicas"), f"set `max` to {window.replicas} or more")


def _check_hpa(autoscale: Autoscale) -> None:
    if autoscale.min == 0:
        raise ProblemError(
            "KG0349",
            "a HorizontalPodAutoscaler cannot scale to zero",
            (*ORIGIN, "min"),
            "use KEDA: set `router: {}`, which holds and counts requests, or `prometheus` and a `query` that measures "
            "demand while no pod runs",
        )
    for field in ("query", "prometheus", "fallback"):
        message = f"a HorizontalPodAutoscaler does not use `{field}`"
        _reject(autoscale, field, field, message, "set `scaler: keda`")
    if seconds(autoscale.idle_after) > LONGEST_WINDOW:
        raise ProblemError(
            "KG0348", "a HorizontalPodAutoscaler waits one hour at most", (*ORIGIN, "idleAfter"), "set `1h` or less"
        )
    if autoscale.metric == "cpu":
        _reject(autoscale, "podMetric", "pod_metric", "`podMetric` has no effect on `cpu`", "leave it out")


def _check_keda(autoscale: Autoscale, *, held: bool) -> None:
    _reject(autoscale, "podMetric", "pod_metric", "KEDA reads Prometheus, not the custom metrics API", "use `query`")
    if autoscale.min == 0 and autoscale.query is None and not autoscale.schedule and not held:
        raise ProblemError(
            "KG0349",
            "nothing can scale up from zero: the engine's metrics do not exist while no pod runs",
            (*ORIGIN, "min"),
            "set `router: {}`, which holds and counts requests, a `query` that measures demand in front of the pods, "
            "or a `schedule`",
        )
    if autoscale.metric == "cpu" and autoscale.query is None:
        _reject(autoscale, "prometheus", "prometheus", "the metric `cpu` needs no Prometheus", "leave it out")
        _reject(autoscale, "fallback", "fallback", "KEDA falls back for no `cpu`, only for Prometheus", "leave it out")
        return
    if autoscale.prometheus is None:
        raise ProblemError("KG0348", "KEDA needs the address of a Prometheus", ORIGIN, "add `prometheus: {address: …}`")
    _check_login(autoscale)
    if autoscale.query is None:
        return
    if "metric" in set_fields(autoscale):
        raise ProblemError(
            "KG0348", "`query` and `metric` exclude each other", (*ORIGIN, "metric"), "leave one of them out"
        )
    if autoscale.target is None:
        raise ProblemError(
            "KG0348",
            "`query` requires `target`",
            ORIGIN,
            "set `target` to the value of the query that one replica can handle",
        )


def _check_login(autoscale: Autoscale) -> None:
    server = autoscale.prometheus
    if server is not None and server.auth_modes and server.trigger_authentication is None:
        raise ProblemError(
            "KG0348",
            "`authModes` has no effect without `triggerAuthentication`, which has the credentials",
            (*ORIGIN, "prometheus", "authModes"),
            "set `triggerAuthentication`, or leave `authModes` out",
        )
