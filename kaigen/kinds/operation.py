"""Blocks of a Topology: scaling, monitoring, disruptions, rollouts and probes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from kaigen.kinds.base import (
    ADDRESS,
    NO_BLANKS,
    Block,
    Choice,
    Duration,
    Labels,
    ObjectName,
)
from kaigen.kinds.exposure import ROUTE_PATH

PERCENT = r"^(100|[1-9]?[0-9])%$"


def _amount(value: Any) -> str:
    return "share" if isinstance(value, str) else "number"


CountOrShare = Annotated[
    Annotated[int, Field(ge=0, le=10000), Tag("number")]
    | Annotated[str, Field(pattern=PERCENT), Tag("share")],
    Discriminator(_amount),
]
"""A number of pods, or a percentage such as `25%`."""


class MetricsServer(Block):
    """The Prometheus server that KEDA queries."""

    address: Annotated[str, Field(pattern=ADDRESS)] = Field(
        description="URL of the server.", examples=["http://prometheus.monitoring:9090"]
    )
    trigger_authentication: ObjectName | None = Field(
        None, description="TriggerAuthentication of KEDA for the server, in the same namespace."
    )


class Autoscale(Block):
    """Scaling of replicas with the load. The number of replicas is then not in Git."""

    min: Annotated[int, Field(ge=0, le=1000)] = Field(
        1, description="Minimum number of replicas; 0 scales to zero when idle, with KEDA."
    )
    max: Annotated[int, Field(ge=1, le=1000)] = Field(description="Maximum number of replicas.")
    scaler: Literal["hpa", "keda"] | None = Field(
        None,
        description="HorizontalPodAutoscaler or KEDA. Default: KEDA with `prometheus`, else HPA.",
    )
    metric: Literal["waiting", "running", "cache", "cpu"] = Field(
        "waiting",
        description="Metric of the load: waiting or running requests (per replica), the used share of the KV cache, or "
        "the used share of the requested CPU (both in percent).",
    )
    target: Annotated[int, Field(ge=1, le=100000)] | None = Field(
        None,
        description="Value of the metric above which replicas are added. Default: 5 for `waiting`, 16 for `running`, "
        "80 for `cache` and `cpu`.",
    )
    query: Annotated[str, Field(min_length=1, max_length=4000)] | None = Field(
        None,
        description="PromQL query in place of `metric`, for KEDA. It returns the total load; `target` is the load of "
        "one replica. To scale from zero, query a gateway or ingress, which sees requests while no pod runs.",
        examples=['sum(rate(istio_requests_total{destination_service_name="chat"}[2m]))'],
    )
    pod_metric: Annotated[str, Field(min_length=1, max_length=253, pattern=NO_BLANKS)] | None = Field(
        None,
        description="Name of the metric in the custom metrics API, for HPA. Default: the name that the engine uses.",
    )
    prometheus: MetricsServer | None = Field(None, description="The Prometheus server that KEDA queries.")
    idle_after: Duration | None = Field(
        None,
        description="Idle time before the last replica is removed, or any replica with HPA. Default: 5m.",
    )


class Monitoring(Block):
    """A PodMonitor of the Prometheus operator for the metrics of the engine."""

    interval: Duration | None = Field(
        None, description="Scrape interval. Default: that of Prometheus.", examples=["15s"]
    )
    labels: Labels = Field(
        {},
        description="Labels by which Prometheus selects monitors.",
        examples=[{"release": "prometheus"}],
    )


class Disruption(Choice):
    """PodDisruptionBudget: how many pods may be unavailable when nodes are drained."""

    exactly_one: ClassVar[tuple[str, ...]] = ("maxUnavailable", "minAvailable")

    max_unavailable: CountOrShare | None = Field(None, description="Pods that may be unavailable at once.")
    min_available: CountOrShare | None = Field(None, description="Pods that must stay available.")


class Rollout(Block):
    """How a change is rolled out."""

    max_surge: CountOrShare | None = Field(
        None,
        description="Replicas above the desired number during a rollout; each needs its own GPUs. Default: 1, or 0 "
        "with GPUs of existing nodes.",
    )
    max_unavailable: CountOrShare | None = Field(
        None,
        description="Replicas that may be unavailable during a rollout. Default: 0, or 1 if none is added.",
    )


class Probes(Block):
    """Probes of the engine. Default: the HTTP paths of the engine; for a container, its port accepts connections."""

    ready: Annotated[str, Field(pattern=ROUTE_PATH, max_length=1024)] | None = Field(
        None, description="Path that answers 200 when the engine is ready for requests.", examples=["/health"]
    )
    live: Annotated[str, Field(pattern=ROUTE_PATH, max_length=1024)] | None = Field(
        None, description="Path that answers 200 unless the process must be restarted. Default: `ready`."
    )
    startup: Duration | None = Field(
        None,
        description="Time limit until the engine is ready. Default: derived from the size and source of the weights.",
    )
