"""The fields of Koldun's `Dllama`, `Root`, `Worker` and `Ingress`."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.dialects.koldun.blocks import CacheSpec, Foreign, ImageText, Int32, Text
from kaigen.kinds.base import Duration, LabelName, Labels, ObjectName, Port
from kaigen.kinds.block import Block

_API_VERSION = Annotated[Literal["koldun.gorizond.io/v1"], Meta(description="Version of Koldun's API.")]


class ModelRef(Block):
    """A Model."""

    kind: Annotated[str, Meta(min_length=1, max_length=63, description="`Model`.")]
    name: Annotated[ObjectName, Meta(description="Name of the Model.", examples=["qwen3"])]
    api_group: Annotated[Text | None, Meta(description="Group of the Model: `koldun.gorizond.io`, or empty.")] = None
    namespace: Annotated[
        LabelName | None,
        Meta(description="Namespace of the Model. Default: that of the resource. Another one requires a bucket."),
    ] = None


class DllamaSpec(Block):
    """A model and the ring that serves it."""

    model_ref: Annotated[ModelRef, Meta(description="The Model.")]
    replica_power: Annotated[
        Int32, Meta(description="Number of workers: 2^p - 1 for p, so that the ring has 2^p pods.", examples=[2])
    ]
    root_image: Annotated[ImageText, Meta(description="Image of the root.")]
    worker_image: Annotated[ImageText, Meta(description="Image of the workers.")]


class Dllama(Foreign):
    """Koldun's `Dllama`."""

    api_version: _API_VERSION
    kind: Annotated[Literal["Dllama"], Meta(description="Kind of the document.")]
    spec: Annotated[DllamaSpec, Meta(description="Desired state.")]


class RootSpec(Block):
    """The root of a ring."""

    model_ref: Annotated[
        ObjectName,
        Meta(description="PersistentVolumeClaim with the converted files, `NAME-s3-output-pvc` for a Model."),
    ]
    image: Annotated[ImageText, Meta(description="Image of the root.")]
    args: Annotated[list[Text], Meta(description="Options of `dllama-api`.")] = field(default_factory=list)
    cache_spec: Annotated[CacheSpec | None, Meta(description="A bucket; ignored.")] = None
    worker_selector: Annotated[
        Labels, Meta(description="Labels of the workers, which the operator does not read; ignored.")
    ] = field(default_factory=dict)


class Root(Foreign):
    """Koldun's `Root`."""

    api_version: _API_VERSION
    kind: Annotated[Literal["Root"], Meta(description="Kind of the document.")]
    spec: Annotated[RootSpec, Meta(description="Desired state.")]


class WorkerSpec(Block):
    """A worker of a ring."""

    model_ref: Annotated[
        ObjectName,
        Meta(description="PersistentVolumeClaim with the converted files, which a worker does not need; ignored."),
    ]
    image: Annotated[ImageText, Meta(description="Image of the worker.")]
    root_ref: Annotated[ObjectName, Meta(description="Name of the Root.")]
    slot: Annotated[int, Meta(ge=0, le=2**31 - 1, description="Position in the ring, from 0 without gaps.")]
    args: Annotated[list[Text], Meta(description="Options of `dllama worker`.")] = field(default_factory=list)
    cache_spec: Annotated[CacheSpec | None, Meta(description="A bucket; ignored.")] = None


class Worker(Foreign):
    """Koldun's `Worker`."""

    api_version: _API_VERSION
    kind: Annotated[Literal["Worker"], Meta(description="Kind of the document.")]
    spec: Annotated[WorkerSpec, Meta(description="Desired state.")]


class Nats(Block):
    """The queue of the operator's sessions."""

    url: Annotated[Text, Meta(description="URL of the server; ignored.")]
    kv_bucket: Annotated[Text | None, Meta(description="Bucket of sessions; ignored.")] = None
    models_bucket: Annotated[Text | None, Meta(description="Bucket of models; ignored.")] = None
    tokens_bucket: Annotated[Text | None, Meta(description="Bucket of API tokens; ignored.")] = None
    model_prefix: Annotated[Text | None, Meta(description="Prefix of models; ignored.")] = None
    token_prefix: Annotated[Text | None, Meta(description="Prefix of API tokens; ignored.")] = None


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


class Backend(Block):
    """The rings behind an Ingress."""

    image: Annotated[Text | None, Meta(description="Image of the operator's sessions; ignored.")] = None
    root_image: Annotated[ImageText, Meta(description="Image of the roots.")]
    worker_image: Annotated[ImageText, Meta(description="Image of the workers.")]
    dispatcher_image: Annotated[Text | None, Meta(description="Image of the operator's dispatcher; ignored.")] = None
    replica_power: Annotated[Int32, Meta(description="Number of workers of a ring: 2^p - 1 for p.", examples=[2])]
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

    port: Annotated[Port, Meta(description="Port of the Service.")] = 80
    type: Annotated[Literal["ClusterIP", "NodePort", "LoadBalancer"], Meta(description="Type of the Service.")] = (
        "ClusterIP"
    )


class IngressRoute(Block):
    """How requests from outside the cluster arrive."""

    host: Annotated[Text, Meta(description="Host name of requests.", examples=["api.example.com"])]
    path: Annotated[Text | None, Meta(description="Path prefix of requests.", examples=["/v1"])] = None
    ingress_class_name: Annotated[ObjectName | None, Meta(description="IngressClass.")] = None


class IngressSpec(Block):
    """Rings that start and stop with the number of requests."""

    backend: Annotated[Backend, Meta(description="The rings.")]
    service: Annotated[IngressService, Meta(description="The Service.")] = field(default_factory=IngressService)
    route: Annotated[IngressRoute | None, Meta(description="The route from outside the cluster.")] = None


class Ingress(Foreign):
    """Koldun's `Ingress`, a kind of later versions."""

    api_version: _API_VERSION
    kind: Annotated[Literal["Ingress"], Meta(description="Kind of the document.")]
    spec: Annotated[IngressSpec, Meta(description="Desired state.")]
