"""The kind `Endpoint`: one address for the models of many Topologies, with a key and a limit for each client."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import AppName, Duration, LabelName, Metadata, ObjectRef, Quantity, TokenSecret, text
from kaigen.kinds.block import Block
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.exposure import HostRoute, Service
from kaigen.kinds.operation import RequestMonitoring
from kaigen.kinds.pod import PodFields

ModelName = Annotated[str, text(r"^[^\s,]+$", min_length=1, max_length=253)]
"""A name of `servedNames`."""


class EndpointModel(Block):
    """A Topology, and the names that requests may use of it."""

    name: Annotated[AppName, Meta(description="A Topology in the same namespace.", examples=["chat"])]
    serves: Annotated[
        list[ModelName],
        Meta(
            description="Names of models that it serves. Default: its `servedNames` and its adapters, which kaigen "
            "does not know of a container or a pod template.",
            examples=[["whisper-1"]],
        ),
    ] = field(default_factory=list)


class EndpointClient(Block):
    """A client: its key, what it may use, and how often."""

    models: Annotated[
        Annotated[list[ModelName | Literal["*"]], Meta(min_length=1, max_length=1000)],
        Meta(
            description="Names of models and adapters that it may use; `*` for all, also for those that are added.",
            examples=[["chat", "legal"]],
        ),
    ]
    requests_per_minute: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(
            description="Requests that all pods together answer in a minute; more get 429. Default: any number.",
            examples=[60],
        ),
    ] = None
    secret: Annotated[
        TokenSecret | None,
        Meta(
            description="Secret with the keys of the client, one a line. Default: the Secret of `keysSecret`, and "
            "in it the name of the client."
        ),
    ] = None


class EndpointTest(Block):
    """A request, and what must answer it. `kaigen validate` sends it to Envoy where that is installed."""

    model: Annotated[ModelName, Meta(description="The `model` of the request.", examples=["chat"])]
    client: Annotated[
        LabelName | None, Meta(description="The client whose key it has. Default: no key.", examples=["team-a"])
    ] = None
    expect: Annotated[
        AppName | Annotated[int, Meta(ge=401, le=404)],
        Meta(description="The Topology that must answer, or the status of the refusal.", examples=["chat", 403]),
    ]


class EndpointSpec(PodFields):
    """The models behind the address, and who may use them."""

    formerly: ClassVar[Mapping[str, tuple[str, ...]]] = {"keys": ("keysSecret",)}

    models: Annotated[
        Annotated[list[AppName | EndpointModel], Meta(min_length=1, max_length=200)],
        Meta(
            description="Topologies of the namespace, whose models and adapters have this address. Each is a name or a "
            "block.",
            examples=[["chat", "phi-4"]],
        ),
    ]
    clients: Annotated[
        Annotated[dict[LabelName, EndpointClient], Meta(min_length=1, max_length=500)],
        Meta(
            description="Who may use which models, by name of the client.",
            examples=[{"team-a": {"models": ["chat"], "requestsPerMinute": 60}}],
        ),
    ]
    keys_secret: Annotated[
        ObjectRef | None,
        Meta(
            description="Secret with the keys of clients: under the name of each client its keys, one a line. Default: "
            "`NAME-keys`.",
            examples=[{"name": "models-keys"}],
        ),
    ] = None
    exclusive: Annotated[
        bool,
        Meta(
            description="Report every Topology that others than the Endpoint may connect to, by the NetworkPolicy of "
            "its `service.allowFrom`, by a route or by a load balancer."
        ),
    ] = False
    max_body: Annotated[
        Quantity,
        Meta(
            description="Longest body of a request, which Envoy keeps in memory while it reads the model.",
            examples=["8Mi"],
        ),
    ] = "32Mi"
    memory: Annotated[
        Quantity,
        Meta(description="Limit of a pod's memory: 70 MiB, and 2.5 times the bodies that it reads at the same time."),
    ] = "1Gi"
    replicas: Annotated[int, Meta(ge=1, le=20, description="Pods of the Endpoint.")] = 2
    service: Annotated[Service, Meta(description="The Service of the app.")] = field(default_factory=Service)
    route: Annotated[
        HostRoute | None, Meta(description="How requests from outside the cluster reach the Endpoint.")
    ] = None
    monitoring: Annotated[
        RequestMonitoring | None,
        Meta(
            description="A PodMonitor for the metrics of Envoy, which then count requests by client and model, alerts, "
            "a dashboard, and traces; `{}` for the PodMonitor only."
        ),
    ] = None
    metrics_from: Annotated[
        list[JsonObject],
        Meta(
            description="Peers of a NetworkPolicy that may read metrics. Default: all pods of the cluster with "
            "`monitoring`, else none.",
            examples=[[{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]],
        ),
    ] = field(default_factory=list)
    drain: Annotated[
        Duration, Meta(description="Time for requests in flight to finish when a pod stops.", examples=["5m"])
    ] = "2m"
    tests: Annotated[
        list[EndpointTest],
        Meta(
            max_length=1000,
            description="Requests and their answers, which every render checks.",
            examples=[[{"model": "chat", "client": "team-a", "expect": "chat"}]],
        ),
    ] = field(default_factory=list)


class Endpoint(Block):
    """One address for the models of many Topologies, with a key and a limit for each client."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")] = API_VERSION
    kind: Annotated[Literal["Endpoint"], Meta(description="Kind of the document.")] = "Endpoint"
    metadata: Annotated[Metadata, Meta(description="Name, namespace, labels and annotations of the app.")]
    spec: Annotated[EndpointSpec, Meta(description="Desired state.")]
