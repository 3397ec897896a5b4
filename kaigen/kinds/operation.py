"""Blocks about operation: scaling, monitoring, disruptions, rollouts, probes, and nodes that are created."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.kinds.base import ADDRESS, DNS_LABEL, DNS_SUBDOMAIN, NO_BLANKS, Duration, Labels, ObjectName, text
from kaigen.kinds.block import Block, Choice, later
from kaigen.kinds.exposure import ROUTE_PATH
from kaigen.kinds.schedule import Window

if TYPE_CHECKING:
    from kaigen.kinds.monitoring import Alerts, Dashboard, Slo, Traces
else:
    Alerts = later("kaigen.kinds.monitoring:Alerts")
    Dashboard = later("kaigen.kinds.monitoring:Dashboard")
    Slo = later("kaigen.kinds.monitoring:Slo")
    Traces = later("kaigen.kinds.monitoring:Traces")

PERCENT = r"^(100|[1-9]?[0-9])%$"


CountOrShare = Annotated[int, Meta(ge=0, le=10000)] | Annotated[str, text(PERCENT)]
"""A number of pods, or a percentage such as `25%`."""


class MetricsServer(Block):
    """The Prometheus server that KEDA queries."""

    address: Annotated[
        str, text(ADDRESS, description="URL of the server.", examples=["http://prometheus.monitoring:9090"])
    ]
    trigger_authentication: Annotated[
        ObjectName | None, Meta(description="TriggerAuthentication of KEDA for the server, in the same namespace.")
    ] = None
    auth_modes: Annotated[
        list[Literal["apiKey", "basic", "bearer", "custom", "oauth", "tls"]],
        Meta(
            description="How KEDA uses the parameters of `triggerAuthentication`; required unless it is a pod "
            "identity of a cloud.",
            examples=[["bearer"]],
        ),
    ] = field(default_factory=list)


class Autoscale(Block):
    """Scaling of replicas with the load. The number of replicas is then not in Git."""

    min: Annotated[
        int, Meta(ge=0, le=1000, description="Minimum number of replicas; 0 scales to zero when idle, with KEDA.")
    ] = 1
    max: Annotated[int, Meta(ge=1, le=1000, description="Maximum number of replicas.")]
    scaler: Annotated[
        Literal["hpa", "keda"] | None,
        Meta(
            description="KEDA or HorizontalPodAutoscaler. Default: KEDA with `prometheus` or `schedule`, and with "
            "`min: 0` for a `router`; else HPA, which needs a metrics adapter for all metrics but `cpu`."
        ),
    ] = None
    metric: Annotated[
        Literal["waiting", "running", "cache", "cpu"],
        Meta(
            description="Metric of the load: waiting or running requests (per replica), the used share of the KV "
            "cache, or the used share of the requested CPU (both in percent). Default with KEDA and a `router` without "
            "picker, or without `prometheus`: the requests in the router, whether they wait or run."
        ),
    ] = "waiting"
    target: Annotated[
        Annotated[int, Meta(ge=1, le=100000)] | None,
        Meta(
            description="Value of the metric above which replicas are added. Default: 5 for `waiting` and for the "
            "requests in a `router`, 16 for `running`, 80 for `cache` and `cpu`."
        ),
    ] = None
    query: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4000)] | None,
        Meta(
            description="PromQL query in place of `metric`, for KEDA. It returns the total load; `target` is the "
            "load of one replica. To scale from zero, query a gateway or ingress, which sees requests while no "
            "pod runs.",
            examples=['sum(rate(istio_requests_total{destination_service_name="chat"}[2m]))'],
        ),
    ] = None
    pod_metric: Annotated[
        Annotated[str, text(NO_BLANKS, min_length=1, max_length=253)] | None,
        Meta(
            description="Name of the metric in the custom metrics API, for HPA. Default: the name that the engine uses."
        ),
    ] = None
    prometheus: Annotated[MetricsServer | None, Meta(description="The Prometheus server that KEDA queries.")] = None
    schedule: Annotated[
        Annotated[list[Window], Meta(min_length=1, max_length=50)] | None,
        Meta(
            description="Times with more replicas than `min`, by KEDA; `min: 0` means none at all other times. Without "
            "`metric`, `query` and `prometheus`, the number of replicas follows the schedule alone.",
        ),
    ] = None
    fallback: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(
            description="Replicas while KEDA cannot read Prometheus, whatever their number was before. Default: the "
            "number stays; with `min: 0`, KEDA stops all of them after `idleAfter`."
        ),
    ] = None
    idle_after: Annotated[
        Duration | None,
        Meta(description="Idle time before the last replica is removed, or any replica with HPA. Default: 5m."),
    ] = None


class DownloadMonitoring(Block):
    """What the Prometheus operator knows of the app: a PodMonitor, and alert rules."""

    interval: Annotated[
        Duration | None, Meta(description="Scrape interval. Default: that of Prometheus.", examples=["15s"])
    ] = None
    labels: Annotated[
        Labels,
        Meta(
            description="Labels by which Prometheus selects monitors and rules.", examples=[{"release": "prometheus"}]
        ),
    ] = field(default_factory=dict)
    alerts: Annotated[Alerts | None, Meta(description="Alert rules; `{}` for the defaults. Default: none.")] = None


class RequestMonitoring(DownloadMonitoring):
    """What the Prometheus operator, Grafana and a collector of traces know of an app that answers requests."""

    dashboard: Annotated[
        Dashboard | None, Meta(description="A dashboard for Grafana; `{}` for the defaults. Default: none.")
    ] = None
    traces: Annotated[
        Traces | None, Meta(description="Where traces of requests go: of vLLM, its router, and an Endpoint.")
    ] = None


class Monitoring(RequestMonitoring):
    """What the Prometheus operator, Grafana and a collector of traces know of the app."""

    slo: Annotated[Slo | None, Meta(description="Objectives, whose alerts are among `alerts`.")] = None


class Disruption(Choice):
    """PodDisruptionBudget: how many pods may be unavailable when nodes are drained."""

    exactly_one: ClassVar[tuple[str, ...]] = ("maxUnavailable", "minAvailable")

    max_unavailable: Annotated[CountOrShare | None, Meta(description="Pods that may be unavailable at once.")] = None
    min_available: Annotated[CountOrShare | None, Meta(description="Pods that must stay available.")] = None


class Rollout(Block):
    """How a change is rolled out."""

    max_surge: Annotated[
        CountOrShare | None,
        Meta(
            description="Replicas above the desired number during a rollout; each needs its own GPUs. Default: "
            "1, or 0 with GPUs of existing nodes."
        ),
    ] = None
    max_unavailable: Annotated[
        CountOrShare | None,
        Meta(description="Replicas that may be unavailable during a rollout. Default: 0, or 1 if none is added."),
    ] = None


class Probes(Block):
    """Probes of the engine. Default: the HTTP paths of the engine; for a container, its port accepts connections."""

    ready: Annotated[
        Annotated[str, text(ROUTE_PATH, max_length=1024)] | None,
        Meta(
            description="Path at `port` that answers 200 when the engine is ready for requests.", examples=["/health"]
        ),
    ] = None
    live: Annotated[
        Annotated[str, text(ROUTE_PATH, max_length=1024)] | None,
        Meta(description="Path at `port` that answers 200 unless the process must be restarted. Default: `ready`."),
    ] = None
    startup: Annotated[
        Duration | None,
        Meta(
            description="Time limit until the engine is ready. Default: derived from the size and source of the "
            "weights."
        ),
    ] = None


class NodeClass(Block):
    """The node class of a NodePool: an existing object of the cloud provider."""

    name: Annotated[ObjectName, Meta(description="Name of the node class.", examples=["default"])]
    kind: Annotated[
        Annotated[str, text(r"^[A-Z][A-Za-z0-9]*$", max_length=63)] | None,
        Meta(description="Kind of the node class. Default: AKSNodeClass or EC2NodeClass, by profile."),
    ] = None
    group: Annotated[
        Annotated[str, text(DNS_SUBDOMAIN, max_length=253)] | None,
        Meta(description="API group of the node class. Default: by profile."),
    ] = None


class Karpenter(Block):
    """A Karpenter NodePool for this app."""

    node_class: Annotated[NodeClass, Meta(description="Node class of the NodePool.")] = field(
        default_factory=lambda: NodeClass(name="default")
    )
    zones: Annotated[
        list[Annotated[str, text(DNS_LABEL, max_length=63)]], Meta(description="Zones of the nodes. Default: all.")
    ] = field(default_factory=list)
    max_nodes: Annotated[
        Annotated[int, Meta(ge=1, le=10000)] | None,
        Meta(description="Maximum number of nodes. Default: those of all replicas, and of one more for a rollout."),
    ] = None
    consolidate_after: Annotated[
        Duration | None, Meta(description="Time before an idle node is removed. Default: 10m.")
    ] = None
    expire_after: Annotated[
        Duration | None, Meta(description="Age at which a node is replaced. Default: never, since models load slowly.")
    ] = None


class Provisioning(Block):
    """Nodes that are created for the app."""

    karpenter: Annotated[Karpenter, Meta(description="Nodes created by Karpenter.")]


ProvisioningRef = Literal["none", "karpenter"] | Provisioning
