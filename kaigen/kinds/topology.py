"""The kind `Topology`: a service that serves a model."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, field

from kaigen.catalog.engines import engine_choices, engine_names
from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import AppName, Duration, Metadata, Port, TokenSecret, text
from kaigen.kinds.block import Block, later
from kaigen.kinds.blocks import Image, Mounted, Params, ParamsFile, Placement, Resources, Security, Transfer
from kaigen.kinds.build import Build
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.exposure import Auth, InferencePool, Route, Router, Service
from kaigen.kinds.operation import Autoscale, Disruption, Monitoring, Probes, ProvisioningRef, Rollout
from kaigen.kinds.pod import PodFields, Variables
from kaigen.kinds.promotable import NAME
from kaigen.kinds.serving import Adapter, EngineArgs, PoolName, ServedModelRef, Shape, Storage

if TYPE_CHECKING:
    from kaigen.kinds.canary import Canary

    EngineName = str
else:
    Canary = later("kaigen.kinds.canary:Canary")
    EngineName = Literal[engine_names()]


class TopologySpec(PodFields):
    """The model, the engine that serves it, its replicas, and how requests reach it."""

    model: Annotated[
        ServedModelRef | None, Meta(description="Source of the weights: the name of a Model, or a block.")
    ] = None
    preset: Annotated[
        Annotated[str, NAME, text(r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", min_length=1, max_length=200)] | None,
        Meta(
            description="Catalogue name of the model, which decides its size and flags. Without `model`, the "
            "engine pulls the weights from the Hub at the commit of the catalogue.",
            examples=["phi-4"],
        ),
    ] = None
    models: Annotated[
        list[AppName | Mounted],
        Meta(
            max_length=20,
            description="Further Models that the engine reads, such as the draft model of speculative decoding or the "
            "repository of a tokenizer. Each is the name of a Model or a block, and is mounted read-only at "
            "`/models/NAME`, which `engineArgs` then name.",
            examples=[["draft"]],
        ),
    ] = field(default_factory=list)
    token_secret: Annotated[
        TokenSecret | None, Meta(description="Secret with a Hub token, for a `preset` whose repository is gated.")
    ] = None
    template: Annotated[
        JsonObject | None,
        Meta(
            description="A pod template that is used unchanged, in place of an engine; `metadata` and `spec` as "
            "in a Deployment."
        ),
    ] = None
    engine: Annotated[EngineName, Meta(description=f"Engine: {engine_choices()}.")] = engine_names()[0]
    image: Annotated[
        Image | None, Meta(description="Image of the engine. Default: the pinned image. Required for a container.")
    ] = None
    build: Annotated[
        Build | None,
        Meta(description="Image of the engine that is built from a Git repository, in place of an existing one."),
    ] = None
    engine_version: Annotated[
        Annotated[str, text(r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")] | None,
        Meta(description="Version of the engine in `image`, if the tag does not contain it.", examples=["0.25.1"]),
    ] = None
    command: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None,
        Meta(description="Entry point of a `container`. Default: the image's."),
    ] = None
    args: Annotated[list[str] | None, Meta(description="Arguments of a `container`. Default: the image's.")] = None
    engine_args: Annotated[
        EngineArgs,
        Meta(
            description="Further flags of the engine. Either a map such as `max-num-batched-tokens: 8192`, where "
            "true sets the flag without a value, false sets its `--no-` form, and a mapping becomes JSON; or a "
            "list of arguments."
        ),
    ] = field(default_factory=dict)
    served_names: Annotated[
        list[Annotated[str, text(r"^[^\s,]+$", min_length=1, max_length=253)]],
        Meta(description="Model names that requests may use. Default: the name of the app."),
    ] = field(default_factory=list)
    shape: Annotated[Shape, Meta(description="Number of replicas, and the GPUs and nodes of each.")] = field(
        default_factory=Shape
    )
    quantization: Annotated[
        Annotated[str, text(r"^[a-z0-9][a-z0-9_-]*$", max_length=60)] | None,
        Meta(
            description="Quantization, by vLLM's name, or the type of distributed-llama's weights. Default: the one in "
            "the configuration of the weights.",
            examples=["fp8_per_tensor"],
        ),
    ] = None
    context_length: Annotated[
        Annotated[int, Meta(ge=1, le=100_000_000)] | None,
        Meta(
            description="Longest context of a request, in tokens. Default: the longest that fits on the GPUs "
            "with the `concurrency`, up to that of the model."
        ),
    ] = None
    concurrency: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(
            description="Maximum number of concurrent requests of one engine. The GPUs must have memory for that "
            "many requests of the longest context. Default: the default of the engine."
        ),
    ] = None
    trust_remote_code: Annotated[bool, Meta(description="Run code from the model's repository. Default: false.")] = (
        False
    )
    adapters: Annotated[list[Adapter], Meta(max_length=100, description="LoRA adapters of the model.")] = field(
        default_factory=list
    )
    env: Variables = field(default_factory=dict)
    params: Annotated[
        Params, Meta(description="Parameters of the engine, as `PARAM_*` variables and in `/etc/kaigen/params.json`.")
    ] = field(default_factory=dict)
    params_file: ParamsFile = None
    resources: Annotated[Resources, Meta(description="Resources of the engine in each pod.")] = field(
        default_factory=Resources
    )
    placement: Annotated[Placement, Meta(description="Where the pods run.")] = field(default_factory=Placement)
    security: Annotated[Security, Meta(description="Security settings of the pods.")] = field(default_factory=Security)
    provisioning: Annotated[
        ProvisioningRef, Meta(description="Nodes for the app: `karpenter`, a block, or `none` for existing nodes.")
    ] = "none"
    storage: Annotated[
        Storage | None,
        Meta(
            description="A volume for each pod, for data that the engine downloads and compiles. Default: "
            "scratch space."
        ),
    ] = None
    port: Annotated[Port, Meta(description="Port that the engine listens on.")] = 8000
    service: Annotated[Service, Meta(description="The Service of the app.")] = field(default_factory=Service)
    route: Annotated[Route | None, Meta(description="How requests from outside the cluster reach the app.")] = None
    inference_pool: Annotated[
        InferencePool | None,
        Meta(description="An InferencePool, whose endpoint picker chooses the pod of each request."),
    ] = None
    router: Annotated[Router | None, Meta(description="A router in front of the replicas; `{}` for the defaults.")] = (
        None
    )
    autoscale: Annotated[Autoscale | None, Meta(description="Scale the number of replicas with the load.")] = None
    auth: Annotated[Auth | None, Meta(description="API key that requests must have. Default: none.")] = None
    monitoring: Annotated[
        Monitoring | None, Meta(description="A PodMonitor for the metrics of the engine; `{}` for the defaults.")
    ] = None
    disruption: Annotated[
        Disruption | None,
        Meta(description="PodDisruptionBudget for several replicas. Default: one pod may be unavailable."),
    ] = None
    rollout: Annotated[Rollout, Meta(description="How a change is rolled out.")] = field(default_factory=Rollout)
    canary: Annotated[
        Canary | None,
        Meta(description="The next version, as a second pool of pods that gets a share of the requests."),
    ] = None
    pool: Annotated[
        PoolName | None,
        Meta(
            description="What follows the name of the Topology in that of the pool that serves. "
            "`kaigen promote --finish` writes it. Default: the pool has the name of the Topology.",
            examples=["v2"],
        ),
    ] = None
    probes: Annotated[Probes, Meta(description="Probes of the engine.")] = field(default_factory=Probes)
    drain: Annotated[
        Duration, Meta(description="Time for requests in flight to finish when a pod stops.", examples=["5m"])
    ] = "2m"
    transfer: Annotated[Transfer, Meta(description="Settings of the downloader.")] = field(default_factory=Transfer)

    @property
    def has_own_image(self) -> bool:
        """Whether the image is not one that kaigen chooses."""
        return self.image is not None or self.build is not None


class Topology(Block):
    """A service that serves a model on an HTTP port, on one node or several."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")] = API_VERSION
    kind: Annotated[Literal["Topology"], Meta(description="Kind of the document.")] = "Topology"
    metadata: Annotated[Metadata, Meta(description="Name, namespace, labels and annotations of the app.")]
    spec: Annotated[TopologySpec, Meta(description="Desired state.")]
