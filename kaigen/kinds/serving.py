"""Blocks of what serves: where its weights come from, how it is reached, scaled and given nodes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from kaigen.kinds.base import (
    ADDRESS,
    DNS_LABEL,
    DNS_SUBDOMAIN,
    NO_BLANKS,
    RELATIVE_PATH,
    Annotations,
    AppName,
    Block,
    Choice,
    Duration,
    LabelName,
    Labels,
    MountPath,
    Object,
    ObjectName,
    Quantity,
    TokenSecret,
)
from kaigen.kinds.blocks import HuggingFace, RepoName, RevisionName
from kaigen.kinds.promotable import IMAGE

PORT = {"ge": 1, "le": 65535}
HOST = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
PERCENT = r"^(100|[1-9]?[0-9])%$"
ROUTE_PATH = r"^/[A-Za-z0-9/_.~%-]*$"

Port = Annotated[int, Field(**PORT)]


def _shape(value: Any) -> str:
    """Which branch of a `short form | block` union a value means: a mapping is the block."""
    return "block" if isinstance(value, dict | Block) else "short"


def _amount(value: Any) -> str:
    return "share" if isinstance(value, str) else "number"


CountOrShare = Annotated[
    Annotated[int, Field(ge=0, le=10000), Tag("number")]
    | Annotated[str, Field(pattern=PERCENT), Tag("share")],
    Discriminator(_amount),
]
"""A number of pods, or a share of them such as `25%`."""


class PulledModel(Block):
    """A repository on the Hugging Face Hub that each engine pulls when it starts."""

    repo: RepoName = Field(description="Repository, `owner/name`.", examples=["Qwen/Qwen2.5-0.5B-Instruct"])
    revision: RevisionName = Field(
        "main",
        description="Commit (best), tag or branch; of the weights, the tokenizer and the repository's code alike.",
        examples=["7ae557604adf67be50417f59c2c2f167def9a775"],
    )
    token_secret: TokenSecret | None = Field(
        None, description="Secret with a Hub token, for gated or private repositories."
    )
    endpoint: Annotated[str, Field(pattern=ADDRESS)] | None = Field(
        None, description="Address of a Hub mirror. Default: the public Hub."
    )


class ImageVolume(Block):
    """Files of an OCI image, mounted read-only without being copied. Kubernetes 1.35 and later do so by default."""

    ref: Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS), IMAGE] = Field(
        description="Image reference; a digest is best.", examples=["ghcr.io/org/qwen-weights@sha256:…"]
    )
    path: Annotated[str, Field(pattern=RELATIVE_PATH, max_length=1024)] | None = Field(
        None, description="Folder in the image. Default: its root.", examples=["models/qwen"]
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        None, description="When to pull. Default: Kubernetes' own rule."
    )
    pull_secrets: list[ObjectName] = Field([], description="Names of Secrets of type dockerconfigjson.")


class ServedModel(Choice):
    """Where the weights that are served come from."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "huggingFace", "image", "folder")

    name: AppName | None = Field(
        None, description="A Model of the same namespace; its volume is shared read-only.", examples=["qwen"]
    )
    hugging_face: PulledModel | None = Field(
        None, description="A repository on the Hugging Face Hub, pulled by each pod when it starts."
    )
    image: ImageVolume | None = Field(None, description="An OCI image that holds the weights, as a volume.")
    folder: MountPath | None = Field(
        None,
        description="Folder of the engine's own image, for weights baked into it.",
        examples=["/weights"],
    )
    mount_path: MountPath | None = Field(
        None,
        description="Folder that holds the weights of `name` or `image` in the container. Default `/model`.",
    )


ServedModelRef = Annotated[
    Annotated[AppName, Tag("short")] | Annotated[ServedModel, Tag("block")], Discriminator(_shape)
]


class AdapterVolume(Block):
    """A folder of a volume that is there already."""

    claim_name: ObjectName = Field(description="Name of the PersistentVolumeClaim.", examples=["adapters"])
    path: Annotated[str, Field(pattern=RELATIVE_PATH, max_length=1024)] | None = Field(
        None, description="Folder in the volume. Default: its root.", examples=["support/v3"]
    )


class Adapter(Choice):
    """A LoRA adapter that is served beside the base model, under a name of its own."""

    exactly_one: ClassVar[tuple[str, ...]] = ("model", "volume", "image", "huggingFace")

    name: Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=50)] = Field(
        description="Name under which requests ask for it.", examples=["support"]
    )
    model: AppName | None = Field(None, description="A Model of the same namespace that holds the adapter.")
    volume: AdapterVolume | None = Field(None, description="A folder of a volume that is there already.")
    image: ImageVolume | None = Field(None, description="An OCI image that holds the adapter, as a volume.")
    hugging_face: HuggingFace | None = Field(
        None, description="A repository on the Hub, fetched by kaigen's downloader before the engine starts."
    )


class Shape(Block):
    """How many copies, and how one copy spreads over GPUs and nodes."""

    replicas: Annotated[int, Field(ge=0, le=1000)] = Field(
        1, description="Copies of the model, each of which answers requests by itself."
    )
    nodes: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None,
        description="Nodes that serve one copy together, a pod each. Default: as many as the model needs.",
    )
    tensor_parallel: Annotated[int, Field(ge=1, le=512)] | None = Field(
        None, description="GPUs that share each layer. Default: derived from the GPUs of a node."
    )
    pipeline_parallel: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None, description="Stages that the layers are cut into. Default: the number of nodes."
    )
    data_parallel: Annotated[int, Field(ge=1, le=512)] | None = Field(
        None, description="Whole copies of the model in one engine, behind its one port. Default 1."
    )
    executor: Literal["native", "ray"] | None = Field(
        None,
        description="How vLLM's processes on several nodes find each other: by its own means, or by Ray. Default: as "
        "the engine's version needs.",
    )
    groups: Literal["leaderWorkerSet", "statefulSet"] | None = Field(
        None,
        description="What holds the pods of several nodes together. Default: LeaderWorkerSet where the profile has it.",
    )


class Storage(Block):
    """A volume of each pod's own, kept between restarts: weights that the engine pulls, kernels that it compiles."""

    size: Quantity = Field(description="Size to ask for, in bytes with a unit.", examples=["100Gi"])
    storage_class_name: Annotated[str, Field(max_length=253)] | None = Field(
        None,
        description="StorageClass. Default: the profile's. `\"\"` leaves the choice to the cluster's default class.",
    )
    retain: bool = Field(
        False, description="Keep the volumes of pods that are scaled away, and of a spec that is deleted."
    )


class Service(Block):
    """The address of what serves inside the cluster, or outside of it."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        "ClusterIP",
        description="Who may reach the Service: the cluster, its nodes' networks, or a load balancer's.",
    )
    port: Port = Field(80, description="Port of the Service.")
    annotations: Annotations = Field(
        {}, description="Annotations of the Service, for the cloud's load balancer."
    )
    load_balancer_class: Annotated[str, Field(min_length=1, max_length=317)] | None = Field(
        None, description="Which load balancer takes it; for type LoadBalancer. Default: the cluster's."
    )
    load_balancer_source_ranges: list[Annotated[str, Field(pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$")]] = Field(
        [],
        description="Networks that may connect, for type LoadBalancer. Default: all.",
        examples=[["203.0.113.0/24"]],
    )
    allow_from: list[Object] = Field(
        [],
        description="Who may connect inside the cluster, as the peers of a NetworkPolicy. Default: everyone.",
        examples=[[{"namespaceSelector": {"matchLabels": {"team": "apps"}}}]],
    )


class Gateway(Choice):
    """The Gateway that a route hangs on: one that is there, or one of its own."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "className")

    name: ObjectName | None = Field(None, description="A Gateway that is there already.", examples=["public"])
    class_name: ObjectName | None = Field(
        None, description="GatewayClass; kaigen then makes a Gateway for this host alone.", examples=["istio"]
    )
    namespace: LabelName | None = Field(
        None, description="Namespace of the Gateway `name`. Default: the app's."
    )
    section_name: ObjectName | None = Field(None, description="Listener of the Gateway `name`. Default: all.")
    timeout: Duration | None = Field(
        None,
        description="Longest time a request may take; answers that stream are one request.",
        examples=["10m"],
    )


class Ingress(Block):
    """An Ingress, where there is no Gateway."""

    class_name: ObjectName | None = Field(
        None, description="IngressClass. Default: the cluster's.", examples=["nginx"]
    )
    annotations: Annotations = Field({}, description="Annotations of the Ingress, for its controller.")


class Tls(Block):
    """The certificate of a route's host."""

    secret_name: ObjectName = Field(
        description="Secret of type `kubernetes.io/tls` with the certificate.", examples=["chat-tls"]
    )
    cluster_issuer: ObjectName | None = Field(
        None, description="cert-manager's ClusterIssuer that makes that Secret. Default: it is there already."
    )


class Route(Choice):
    """How requests from outside the cluster come in."""

    exactly_one: ClassVar[tuple[str, ...]] = ("gateway", "ingress")

    host: Annotated[str, Field(pattern=HOST, max_length=253)] = Field(
        description="Host name that is asked for.", examples=["chat.example.com"]
    )
    path: Annotated[str, Field(pattern=ROUTE_PATH, max_length=1024)] = Field(
        "/", description="Start of the paths that are passed on, unchanged."
    )
    gateway: Gateway | None = Field(None, description="Through Gateway API: an HTTPRoute.")
    ingress: Ingress | None = Field(None, description="Through an Ingress.")
    tls: Tls | None = Field(
        None, description="Certificate of the host. A Gateway that is there already brings its own."
    )


class InferencePool(Block):
    """Gateway API Inference Extension: an endpoint picker chooses the pod of each request."""

    endpoint_picker: ObjectName = Field(
        description="Service of the endpoint picker, in the same namespace.", examples=["chat-epp"]
    )
    port: Port = Field(9002, description="Port of that Service.")
    failure_mode: Literal["FailOpen", "FailClose"] = Field(
        "FailClose", description="When the picker does not answer: pass requests to any pod, or refuse them."
    )


class MetricsServer(Block):
    """The Prometheus that KEDA asks."""

    address: Annotated[str, Field(pattern=ADDRESS)] = Field(
        description="Its address.", examples=["http://prometheus.monitoring:9090"]
    )
    trigger_authentication: ObjectName | None = Field(
        None, description="KEDA's TriggerAuthentication for it, in the same namespace."
    )


class Autoscale(Block):
    """Replicas that follow the load. Git then does not say how many there are."""

    min: Annotated[int, Field(ge=0, le=1000)] = Field(
        1, description="Fewest replicas; 0 scales to zero when idle, by KEDA."
    )
    max: Annotated[int, Field(ge=1, le=1000)] = Field(description="Most replicas.")
    scaler: Literal["hpa", "keda"] | None = Field(
        None,
        description="HorizontalPodAutoscaler or KEDA. Default: KEDA where `prometheus` is given, else HPA.",
    )
    metric: Literal["waiting", "running", "cache", "cpu"] = Field(
        "waiting",
        description="What the load is told by: requests that wait, requests that run (each a number a replica), the "
        "share of the KV cache in use, or of the CPU requested (each in percent).",
    )
    target: Annotated[int, Field(ge=1, le=100000)] | None = Field(
        None,
        description="Value of the metric that replicas are added above. Default 5, 16, 80 or 80 by metric.",
    )
    query: Annotated[str, Field(min_length=1, max_length=4000)] | None = Field(
        None,
        description="PromQL query in place of `metric`, for KEDA: the whole load, of which `target` is one replica's. "
        "To scale from zero it must see demand while no pod runs, so ask what stands in front: a gateway or ingress.",
        examples=['sum(rate(istio_requests_total{destination_service_name="chat"}[2m]))'],
    )
    pod_metric: Annotated[str, Field(min_length=1, max_length=253, pattern=NO_BLANKS)] | None = Field(
        None,
        description="Name of the metric in the custom metrics API, for HPA. Default: the engine's own name of it.",
    )
    prometheus: MetricsServer | None = Field(None, description="The Prometheus that KEDA asks.")
    idle_after: Duration | None = Field(
        None,
        description="How long it must be idle before the last replica goes, or before any does with HPA. "
        "Default 5m.",
    )


class Auth(Block):
    """The API key that requests must bring, as `Authorization: Bearer KEY`."""

    secret: ObjectName = Field(description="Name of the Secret.", examples=["chat-api-key"])
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)] = Field(
        "api-key", description="Key that holds the API key."
    )


class Monitoring(Block):
    """A PodMonitor, from which the Prometheus operator has the engine's metrics read."""

    interval: Duration | None = Field(
        None, description="How often. Default: Prometheus' own.", examples=["15s"]
    )
    labels: Labels = Field(
        {},
        description="Labels by which the Prometheus chooses its monitors.",
        examples=[{"release": "prometheus"}],
    )


class Disruption(Choice):
    """How much of what serves may be away when nodes are drained."""

    exactly_one: ClassVar[tuple[str, ...]] = ("maxUnavailable", "minAvailable")

    max_unavailable: CountOrShare | None = Field(None, description="How many pods may be away at once.")
    min_available: CountOrShare | None = Field(None, description="How many pods must stay.")


class Rollout(Block):
    """How a change reaches the pods."""

    max_surge: CountOrShare | None = Field(
        None,
        description="Replicas above the wanted number meanwhile; each needs GPUs of its own. Default 1, and 0 where "
        "GPUs are those of existing nodes.",
    )
    max_unavailable: CountOrShare | None = Field(
        None, description="Replicas that may be away meanwhile. Default 0, and 1 where none is added."
    )


class Probes(Block):
    """HTTP paths that tell how the engine is. Default: the engine's; of a container, that its port opens."""

    ready: Annotated[str, Field(pattern=ROUTE_PATH, max_length=1024)] | None = Field(
        None, description="Answers 200 when requests may come.", examples=["/health"]
    )
    live: Annotated[str, Field(pattern=ROUTE_PATH, max_length=1024)] | None = Field(
        None, description="Answers 200 unless the process must be restarted. Default: as `ready`."
    )
    startup: Duration | None = Field(
        None,
        description="Longest time until it is ready. Default: from the bytes of the weights and their source.",
    )


class NodeClass(Block):
    """The cloud's part of a NodePool: an object that is there already."""

    name: ObjectName = Field(description="Its name.", examples=["default"])
    kind: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=63)] | None = Field(
        None, description="Its kind. Default: AKSNodeClass or EC2NodeClass, by profile."
    )
    group: Annotated[str, Field(pattern=DNS_SUBDOMAIN, max_length=253)] | None = Field(
        None, description="Its API group. Default: that of the profile's kind."
    )


class Karpenter(Block):
    """A Karpenter NodePool of this app's own."""

    node_class: NodeClass = Field(
        default_factory=lambda: NodeClass(name="default"), description="The cloud's part of it."
    )
    zones: list[Annotated[str, Field(pattern=DNS_LABEL, max_length=63)]] = Field(
        [], description="Zones that nodes may be in. Default: all."
    )
    max_nodes: Annotated[int, Field(ge=1, le=10000)] | None = Field(
        None,
        description="Most nodes at once. Default: those of all replicas, and one more copy's for a rollout.",
    )
    consolidate_after: Duration | None = Field(
        None, description="How long a node stays that has nothing to do. Default 10m."
    )
    expire_after: Duration | None = Field(
        None, description="Age at which a node is replaced. Default: never, since a model takes long to load."
    )


class Provisioning(Choice):
    """Nodes that are made for the app."""

    exactly_one: ClassVar[tuple[str, ...]] = ("karpenter",)

    karpenter: Karpenter = Field(description="By Karpenter.")


ProvisioningRef = Annotated[
    Annotated[Literal["none", "karpenter"], Tag("short")] | Annotated[Provisioning, Tag("block")],
    Discriminator(_shape),
]
