"""Koldun's Ingress, Session and Token, as of commit edc6442, or of later ones where a description says so."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.core.json_types import JsonObject
from kaigen.dialects.koldun.kinds import ApiVersion, Foreign, ImageText, Int32, RuntimeNats, Text
from kaigen.dialects.koldun.ring_kinds import ModelRef
from kaigen.kinds.base import Annotations, Duration, ObjectName, Port
from kaigen.kinds.block import Block


class Nats(Block):
    """The queue of the operator's sessions."""

    url: Annotated[Text, Meta(description="URL of the server; ignored.")]
    kv_bucket: Annotated[Text | None, Meta(description="Bucket of sessions; ignored.")] = None
    models_bucket: Annotated[Text | None, Meta(description="Bucket of models; ignored.")] = None
    tokens_bucket: Annotated[Text | None, Meta(description="Bucket of API tokens; ignored.")] = None
    model_prefix: Annotated[Text | None, Meta(description="Prefix of models; ignored.")] = None
    token_prefix: Annotated[Text | None, Meta(description="Prefix of API tokens; ignored.")] = None
    ttl_prefix: Annotated[Text | None, Meta(description="Prefix of sessions; ignored.")] = None


class SessionScaling(Block):
    """Scaling of the number of rings."""

    min_dllamas: Annotated[
        int, Meta(ge=0, le=1000, description="Least number of rings; 0 stops all while there are no requests.")
    ] = 1
    max_dllamas: Annotated[int, Meta(ge=1, le=1000, description="Greatest number of rings.")] = 1
    scale_up_backlog: Annotated[
        Annotated[int, Meta(ge=1, le=100000)] | None,
        Meta(description="Waiting requests for each ring before another starts."),
    ] = None
    scale_down_idle_seconds: Annotated[
        Annotated[int, Meta(ge=0, le=86400)] | None, Meta(description="Seconds without requests before a ring stops.")
    ] = None


class RootMemory(Block):
    """How the operator computes the memory of roots."""

    overhead_max_ratio: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Memory of a root by the size of its share of the weights; ignored."),
    ] = None


class Backend(Block):
    """The rings behind an Ingress."""

    image: Annotated[Text | None, Meta(description="Image of the operator's backend; ignored.")] = None
    image_pull_policy: Annotated[
        Text | None, Meta(description="When the image of the operator's backend is pulled; ignored.")
    ] = None
    extra_args: Annotated[list[Text], Meta(description="Options of the operator's backend; ignored.")] = field(
        default_factory=list
    )
    resources: Annotated[JsonObject, Meta(description="Requests and limits of the operator's backend; ignored.")] = (
        field(default_factory=dict)
    )
    hash_secret: Annotated[
        Text | None, Meta(description="Key of the names of conversations in the operator's backend; ignored.")
    ] = None
    allow_anonymous: Annotated[
        bool,
        Meta(
            description="Whether requests need no token. With `false`, they need one of the `Token` resources of the "
            "namespace, or the key in the Secret of `kaigen.dev/api-key-secret`."
        ),
    ] = False
    root_image: Annotated[ImageText, Meta(description="Image of the roots.")]
    worker_image: Annotated[ImageText, Meta(description="Image of the workers.")]
    dispatcher_image: Annotated[Text | None, Meta(description="Image of the operator's dispatcher; ignored.")] = None
    replica_power: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)],
        Meta(
            description="Number of workers of a ring: 2^p - 1 for p. Default, also for 0: `replicaPower` of the Model, "
            "else 1.",
            examples=[2],
        ),
    ] = 0
    root_memory: Annotated[
        RootMemory | None, Meta(description="How the operator computes the memory of roots; ignored.")
    ] = None
    nats: Annotated[Nats | None, Meta(description="The queue of the operator's sessions; ignored.")] = None
    conversation_ttl: Annotated[
        Duration | None, Meta(description="How long the operator keeps a ring for one conversation; ignored.")
    ] = field(default=None, name="conversationTTL")
    response_timeout: Annotated[Duration | None, Meta(description="Time limit of a request.", examples=["5m"])] = None
    session_scaling: Annotated[SessionScaling | None, Meta(description="Scaling of the number of rings.")] = None
    dispatcher_metrics_listen: Annotated[
        Text | None, Meta(description="Address of the dispatcher's metrics; ignored.")
    ] = None


class IngressService(Block):
    """The Service of an Ingress."""

    port: Annotated[Port, Meta(description="Port of the Service.")] = 8082
    type: Annotated[Literal["ClusterIP", "NodePort", "LoadBalancer"], Meta(description="Type of the Service.")] = (
        "ClusterIP"
    )


class IngressTls(Block):
    """A TLS certificate."""

    hosts: Annotated[list[Text], Meta(description="Host names of the certificate. Default: all.")] = field(
        default_factory=list
    )
    secret_name: Annotated[
        ObjectName | None, Meta(description="Secret with the certificate.", examples=["api-example-com-tls"])
    ] = None


class IngressRoute(Block):
    """How requests from outside the cluster arrive."""

    host: Annotated[Text, Meta(description="Host name of requests.", examples=["api.example.com"])]
    path: Annotated[Text | None, Meta(description="Path prefix of requests.", examples=["/v1"])] = None
    path_type: Annotated[
        Text | None, Meta(description="How `path` is compared. kaigen compares by prefix.", examples=["Prefix"])
    ] = None
    ingress_class_name: Annotated[ObjectName | None, Meta(description="IngressClass.")] = None
    annotations: Annotated[Annotations, Meta(description="Annotations of the Ingress.")] = field(default_factory=dict)
    tls: Annotated[list[IngressTls], Meta(description="Certificate of the host.")] = field(default_factory=list)


class IngressSpec(Block):
    """Rings that start and stop with the number of requests."""

    backend: Annotated[Backend, Meta(description="The rings.")]
    service: Annotated[IngressService, Meta(description="The Service.")] = field(default_factory=IngressService)
    route: Annotated[IngressRoute | None, Meta(description="The route from outside the cluster.")] = None


class Ingress(Foreign):
    """Koldun's `Ingress`, a kind of later versions."""

    api_version: ApiVersion
    kind: Annotated[Literal["Ingress"], Meta(description="Kind of the document.")]
    spec: Annotated[IngressSpec, Meta(description="Desired state.")]


class SessionSpec(Block):
    """A conversation, and how many rings answer it."""

    hash: Annotated[Text, Meta(description="Hash of the conversation.")]
    model_ref: Annotated[ModelRef, Meta(description="The Model.")]
    root_image: Annotated[ImageText, Meta(description="Image of the roots.")]
    worker_image: Annotated[ImageText, Meta(description="Image of the workers.")]
    dispatcher_image: Annotated[Text | None, Meta(description="Image of the dispatcher.")] = None
    dispatcher_metrics_listen: Annotated[Text | None, Meta(description="Address of the dispatcher's metrics.")] = None
    replica_power: Annotated[Int32 | None, Meta(description="Number of workers of a ring.")] = None
    min_idle: Annotated[Int32 | None, Meta(description="Least number of rings.")] = None
    max_workers: Annotated[Int32 | None, Meta(description="Greatest number of rings.")] = None
    scaling: Annotated[JsonObject, Meta(description="Scaling of the number of rings.")] = field(default_factory=dict)
    ttl: Annotated[Text | None, Meta(description="How long the rings are kept.")] = None
    queue: Annotated[JsonObject, Meta(description="The queue of the conversation.")] = field(default_factory=dict)
    nats: Annotated[RuntimeNats | None, Meta(description="The server of the queue.")] = None


class Session(Foreign):
    """Koldun's `Session`, which the backend of later versions creates for each conversation; refused."""

    api_version: ApiVersion
    kind: Annotated[Literal["Session"], Meta(description="Kind of the document.")]
    spec: Annotated[SessionSpec, Meta(description="Desired state.")]


class TokenSpec(Block):
    """An API token."""

    hash: Annotated[Text, Meta(description="SHA-256 checksum of the token.")]
    disabled: Annotated[bool, Meta(description="Whether the token is invalid.")] = False
    metadata: Annotated[dict[str, str], Meta(description="Notes about the token.")] = field(default_factory=dict)


class Token(Foreign):
    """Koldun's `Token` of later versions, an API token by its hash."""

    api_version: ApiVersion
    kind: Annotated[Literal["Token"], Meta(description="Kind of the document.")]
    spec: Annotated[TokenSpec, Meta(description="Desired state.")]
