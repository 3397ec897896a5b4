"""The kind `Topology`: a service that serves a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, JsonValue, Tag

from kaigen.catalog.engines import engine_choices, engine_names
from kaigen.kinds.base import Block, Duration, Metadata, Object, TokenSecret
from kaigen.kinds.blocks import Env, Image, Placement, Resources, Security, Transfer
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.exposure import Auth, InferencePool, Port, Route, Service
from kaigen.kinds.operation import Autoscale, Disruption, Monitoring, Probes, Rollout
from kaigen.kinds.promotable import NAME
from kaigen.kinds.provisioning import ProvisioningRef
from kaigen.kinds.serving import Adapter, ServedModelRef, Shape, Storage

if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[engine_names()]

FLAG = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


def _arguments(value: Any) -> str:
    return "list" if isinstance(value, list) else "map"


EngineArgs = Annotated[
    Annotated[dict[Annotated[str, Field(pattern=FLAG, max_length=120)], JsonValue], Tag("map")]
    | Annotated[list[Annotated[str, Field(min_length=1)]], Tag("list")],
    Discriminator(_arguments),
]


class TopologySpec(Block):
    """The model, the engine that serves it, its replicas, and how requests reach it."""

    model: ServedModelRef | None = Field(
        None, description="Source of the weights: the name of a Model, or a block."
    )
    preset: (
        Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"), NAME]
        | None
    ) = Field(
        None,
        description="Catalogue name of the model, which decides its size and flags. Without `model`, the engine pulls "
        "the weights from the Hub at the commit of the catalogue.",
        examples=["phi-4"],
    )
    token_secret: TokenSecret | None = Field(
        None, description="Secret with a Hub token, for a `preset` whose repository is gated."
    )
    template: Object | None = Field(
        None,
        description="A pod template that is used unchanged, in place of an engine; `metadata` and `spec` as in a "
        "Deployment.",
    )
    engine: EngineName = Field(engine_names()[0], description=f"Engine: {engine_choices()}.")
    image: Image | None = Field(
        None, description="Image of the engine. Default: the pinned image. Required for a container."
    )
    engine_version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")] | None = Field(
        None,
        description="Version of vLLM in `image`, if the tag does not contain it.",
        examples=["0.25.1"],
    )
    command: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="Entry point of a `container`. Default: the image's."
    )
    args: list[str] | None = Field(None, description="Arguments of a `container`. Default: the image's.")
    engine_args: EngineArgs = Field(
        {},
        description="Further flags of the engine. Either a map such as `max-num-batched-tokens: 8192`, where true sets "
        "the flag without a value, false sets its `--no-` form, and a mapping becomes JSON; or a list of arguments.",
    )
    served_names: list[Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[^\s,]+$")]] = Field(
        [], description="Model names that requests may use. Default: the name of the app."
    )
    shape: Shape = Field(
        default_factory=dict,
        validate_default=True,
        description="Number of replicas, and the GPUs and nodes of each.",
    )
    quantization: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)] | None = Field(
        None,
        description="Quantization, by vLLM's name. Default: the one in the configuration of the weights.",
        examples=["fp8", "awq"],
    )
    context_length: Annotated[int, Field(ge=1, le=100_000_000)] | None = Field(
        None,
        description="Longest context of a request, in tokens. Default: the longest that fits on the GPUs with the "
        "`concurrency`, up to that of the model.",
    )
    concurrency: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None,
        description="Maximum number of concurrent requests of one engine. The GPUs must have memory "
        "for that many requests of the longest context. Default: the default of the engine.",
    )
    trust_remote_code: bool = Field(
        False, description="Run code from the model's repository. Default: false."
    )
    adapters: Annotated[list[Adapter], Field(max_length=100)] = Field(
        [], description="LoRA adapters that are served with the model."
    )
    env: Env = Field({}, description="Environment variables: a value, or its source.")
    resources: Resources = Field(
        default_factory=dict, validate_default=True, description="Resources of the engine in each pod."
    )
    placement: Placement = Field(
        default_factory=dict, validate_default=True, description="Where the pods run."
    )
    security: Security = Field(
        default_factory=dict, validate_default=True, description="Security settings of the pods."
    )
    provisioning: ProvisioningRef = Field(
        "none",
        description="Nodes for the app: `karpenter`, a block, or `none` for existing nodes.",
    )
    storage: Storage | None = Field(
        None,
        description="A volume for each pod, for data that the engine downloads and compiles. Default: scratch space.",
    )
    port: Port = Field(8000, description="Port that the engine listens on.")
    service: Service = Field(
        default_factory=dict, validate_default=True, description="The Service of the app."
    )
    route: Route | None = Field(None, description="How requests from outside the cluster reach the app.")
    inference_pool: InferencePool | None = Field(
        None, description="An InferencePool, whose endpoint picker chooses the pod of each request."
    )
    autoscale: Autoscale | None = Field(None, description="Scale the number of replicas with the load.")
    auth: Auth | None = Field(None, description="API key that requests must have. Default: none.")
    monitoring: Monitoring | None = Field(
        None, description="A PodMonitor for the metrics of the engine; `{}` for the defaults."
    )
    disruption: Disruption | None = Field(
        None,
        description="PodDisruptionBudget for several replicas. Default: one pod may be unavailable.",
    )
    rollout: Rollout = Field(
        default_factory=dict, validate_default=True, description="How a change is rolled out."
    )
    probes: Probes = Field(
        default_factory=dict,
        validate_default=True,
        description="Probes of the engine.",
    )
    drain: Duration = Field(
        "2m", description="Time for requests in flight to finish when a pod stops.", examples=["5m"]
    )
    transfer: Transfer = Field(
        default_factory=dict,
        validate_default=True,
        description="Settings of the downloader.",
    )


class Topology(Block):
    """A service that serves a model on an HTTP port, on one node or several."""

    api_version: Literal["kaigen.dev/v1alpha1"] = Field(API_VERSION, description="Version of kaigen's kinds.")
    kind: Literal["Topology"] = Field("Topology", description="Kind of the document.")
    metadata: Metadata = Field(description="Name, namespace, labels and annotations of the app.")
    spec: TopologySpec = Field(description="Desired state.")
