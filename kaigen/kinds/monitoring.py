"""Blocks of `monitoring`: alert rules, service level objectives, dashboards and traces."""

from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta, field

from kaigen.kinds.base import ADDRESS, Annotations, Duration, Labels, ObjectName, text
from kaigen.kinds.block import Block, Choice

AlertName = Literal[
    "downloadStuck",
    "errorBudgetFast",
    "errorBudgetSlow",
    "firstToken",
    "gateWaiting",
    "jobFailed",
    "jobStuck",
    "kvCache",
    "notReady",
    "preemptions",
    "queue",
    "scheduleMissed",
    "tokenExpiring",
]
ALERT_NAMES: tuple[str, ...] = get_args(AlertName)


class Alert(Block):
    """Changes of one alert."""

    enabled: Annotated[bool, Meta(description="Whether the rule exists.")] = True
    above: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="Threshold, in the unit of the alert: requests, a share of 1, requests per second, or seconds. "
            "Alerts on objectives have theirs in `slo`.",
            examples=[20],
        ),
    ] = None
    hold: Annotated[
        Duration | None, Meta(description="How long the condition must be true, the rule's `for`.", examples=["10m"])
    ] = None
    severity: Annotated[
        Literal["critical", "warning", "info"] | None, Meta(description="Label `severity` of the alert.")
    ] = None


class Alerts(Block):
    """A PrometheusRule of the Prometheus operator with the alerts that fit the app."""

    labels: Annotated[
        Labels,
        Meta(
            description="Labels of every alert, by which Alertmanager routes it. In a namespace of a tenant, `team` is "
            "the tenant.",
            examples=[{"team": "search"}],
        ),
    ] = field(default_factory=dict)
    rules: Annotated[
        dict[AlertName, Alert],
        Meta(description="Changes by name of the alert.", examples=[{"queue": {"above": 20, "hold": "10m"}}]),
    ] = field(default_factory=dict)
    expires: Annotated[
        dict[ObjectName, Annotated[str, text(r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$")]],
        Meta(
            description="Days on which tokens expire, by the Secret that has them, for the alert `tokenExpiring`.",
            examples=[{"hf-token": "2027-06-30"}],
        ),
    ] = field(default_factory=dict)
    runbook: Annotated[
        Annotated[str, text(ADDRESS)] | None,
        Meta(
            description="URL of your runbooks; an alert links to the part with its name. Default: the documentation of "
            "kaigen.",
            examples=["https://runbooks.example.com/serving"],
        ),
    ] = None


Latency = Annotated[str, text(r"^[1-9][0-9]*(ms|s)$", max_length=10)]


class FirstToken(Choice):
    """The longest time to the first token, of a share of the requests."""

    exactly_one: ClassVar[tuple[str, ...]] = ("p50", "p90", "p95", "p99")

    p50: Annotated[Latency | None, Meta(description="Of half of the requests.", examples=["500ms"])] = None
    p90: Annotated[Latency | None, Meta(description="Of 90% of the requests.", examples=["1s"])] = None
    p95: Annotated[Latency | None, Meta(description="Of 95% of the requests.", examples=["2s"])] = None
    p99: Annotated[Latency | None, Meta(description="Of 99% of the requests.", examples=["5s"])] = None


class Slo(Block):
    """Service level objectives, for the alerts `firstToken`, `errorBudgetFast` and `errorBudgetSlow`."""

    availability: Annotated[
        Annotated[str, text(r"^[1-9][0-9](\.[0-9]{1,4})?%$")] | None,
        Meta(
            description="Share of requests that the server does not answer with an error (5xx), below 100%.",
            examples=["99.9%"],
        ),
    ] = None
    ttft: Annotated[FirstToken | None, Meta(description="Time to the first token.", examples=[{"p95": "2s"}])] = None
    window: Annotated[
        Annotated[str, text(r"^[1-9][0-9]{0,2}d$")],
        Meta(description="Days in which the error budget may be used.", examples=["28d"]),
    ] = "30d"


class Dashboard(Block):
    """A ConfigMap with a dashboard, which the sidecar of Grafana's chart loads."""

    labels: Annotated[Labels, Meta(description="Labels by which the sidecar finds it.")] = field(
        default_factory=lambda: {"grafana_dashboard": "1"}
    )
    annotations: Annotated[
        Annotations,
        Meta(
            description="Annotations that the sidecar reads, such as the folder.", examples=[{"grafana_folder": "AI"}]
        ),
    ] = field(default_factory=dict)
    url: Annotated[
        Annotated[str, text(ADDRESS)] | None,
        Meta(
            description="URL of Grafana. With it, alerts link to the dashboard.",
            examples=["https://grafana.example.com"],
        ),
    ] = None


class Traces(Block):
    """Traces of requests, which vLLM, its router and an Endpoint send by OTLP."""

    endpoint: Annotated[
        str, text(ADDRESS, description="URL of the collector.", examples=["http://otel-collector.monitoring:4317"])
    ]
    protocol: Annotated[Literal["grpc", "http/protobuf"], Meta(description="Protocol of the collector's port.")] = (
        "grpc"
    )


class RunMonitoring(Block):
    """Alerts on objects that have no metrics of their own."""

    labels: Annotated[
        Labels, Meta(description="Labels by which Prometheus selects rules.", examples=[{"release": "prometheus"}])
    ] = field(default_factory=dict)
    alerts: Annotated[Alerts, Meta(description="The alerts; `{}` for the defaults.")]
