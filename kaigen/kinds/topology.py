"""The kind `Topology`: work that serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, JsonValue, Tag

from kaigen.catalog.engines import engine_names
from kaigen.kinds.base import Block, Duration, Metadata, Object, TokenSecret
from kaigen.kinds.blocks import Env, Image, Placement, Resources, Security, Transfer
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.promotable import NAME
from kaigen.kinds.serving import (
    Adapter,
    Auth,
    Autoscale,
    Disruption,
    InferencePool,
    Monitoring,
    Port,
    Probes,
    ProvisioningRef,
    Rollout,
    Route,
    ServedModelRef,
    Service,
    Shape,
    Storage,
)

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
    """What is served, by which engine, in what shape, and how it is reached."""

    model: ServedModelRef | None = Field(
        None, description="Where the weights come from: the name of a Model, or a block."
    )
    preset: (
        Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"), NAME]
        | None
    ) = Field(
        None,
        description="Catalogue name of the model: its size, and the flags that it needs. Without `model` its weights "
        "are pulled from its repository on the Hub, at the catalogue's commit.",
        examples=["phi-4"],
    )
    token_secret: TokenSecret | None = Field(
        None, description="Secret with a Hub token, for a `preset` whose repository is gated."
    )
    template: Object | None = Field(
        None,
        description="A pod template taken as it is, in place of an engine; `metadata` and `spec` as in a Deployment.",
    )
    engine: EngineName = Field(
        engine_names()[0],
        description="What serves: vLLM, kaigen's own small server on transformers (CPUs, small models, tests), or a "
        "container that `image`, `command` and `args` describe.",
    )
    image: Image | None = Field(
        None, description="Image of the engine. Default: the pinned one; a container must name its own."
    )
    engine_version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")] | None = Field(
        None,
        description="Version of vLLM in `image`, where its tag does not tell.",
        examples=["0.25.1"],
    )
    command: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="Entry point of a `container`. Default: the image's."
    )
    args: list[str] | None = Field(None, description="Arguments of a `container`. Default: the image's.")
    engine_args: EngineArgs = Field(
        {},
        description="Further flags of the engine: a map, `max-num-batched-tokens: 8192`, where true gives the flag "
        "alone, false its `--no-` form and a mapping JSON; or a list of arguments as they are.",
    )
    served_names: list[Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[^\s,]+$")]] = Field(
        [], description="Names under which requests ask for the model. Default: the app's name."
    )
    shape: Shape = Field(
        default_factory=dict, validate_default=True, description="How many copies, and how each is spread."
    )
    quantization: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)] | None = Field(
        None,
        description="Quantization, as vLLM calls it. Default: what the weights' own configuration says.",
        examples=["fp8", "awq"],
    )
    context_length: Annotated[int, Field(ge=1, le=100_000_000)] | None = Field(
        None,
        description="Longest context of a request, in tokens. Default: the model's own, and 8192 at most with a "
        "`preset` on GPUs that are known.",
    )
    concurrency: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None,
        description="Most requests that one engine works on at a time; with a `preset` it must have room for as many "
        "of the longest context. Default: the engine's own.",
    )
    trust_remote_code: bool = Field(
        False, description="Run code that the model's repository brings along. Default: refuse it."
    )
    adapters: Annotated[list[Adapter], Field(max_length=100)] = Field(
        [], description="LoRA adapters that are served beside the model."
    )
    env: Env = Field({}, description="Environment variables: a value, or where to read it from.")
    resources: Resources = Field(
        default_factory=dict, validate_default=True, description="What each pod's engine is given."
    )
    placement: Placement = Field(
        default_factory=dict, validate_default=True, description="Where the pods run."
    )
    security: Security = Field(
        default_factory=dict, validate_default=True, description="How far the pods are locked in."
    )
    provisioning: ProvisioningRef = Field(
        "none",
        description="Nodes made for the app: `karpenter`, a block, or `none` for nodes that are there.",
    )
    storage: Storage | None = Field(
        None,
        description="A volume of each pod's own for what the engine pulls and compiles. Default: scratch space.",
    )
    port: Port = Field(8000, description="Port that the engine listens on.")
    service: Service = Field(
        default_factory=dict, validate_default=True, description="The address inside the cluster."
    )
    route: Route | None = Field(None, description="How requests from outside the cluster come in.")
    inference_pool: InferencePool | None = Field(
        None, description="An InferencePool, from which an endpoint picker chooses the pod of each request."
    )
    autoscale: Autoscale | None = Field(None, description="Replicas that follow the load.")
    auth: Auth | None = Field(
        None, description="The API key that requests must bring. Default: none is asked for."
    )
    monitoring: Monitoring | None = Field(
        None, description="A PodMonitor for the engine's metrics; `{}` for one as is."
    )
    disruption: Disruption | None = Field(
        None,
        description="What drained nodes leave running, with several replicas. Default: one pod may be away.",
    )
    rollout: Rollout = Field(
        default_factory=dict, validate_default=True, description="How a change reaches the pods."
    )
    probes: Probes = Field(
        default_factory=dict,
        validate_default=True,
        description="How Kubernetes sees that the engine is well.",
    )
    drain: Duration = Field(
        "2m", description="Time that requests in flight are given when a pod stops.", examples=["5m"]
    )
    transfer: Transfer = Field(
        default_factory=dict,
        validate_default=True,
        description="How kaigen's downloader moves what it fetches.",
    )


class Topology(Block):
    """Work that serves: a model behind an HTTP port, on one node or many."""

    api_version: Literal["kaigen.dev/v1alpha1"] = Field(API_VERSION, description="Version of kaigen's kinds.")
    kind: Literal["Topology"] = Field("Topology", description="The kind.")
    metadata: Metadata = Field(description="Who the app is.")
    spec: TopologySpec = Field(description="What is wanted.")
