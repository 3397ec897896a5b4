"""Koldun's kinds and the blocks that they share, as of commit edc6442, or of later ones where a description says so."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from kaigen.core.json_types import Json, JsonObject
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import Annotations, Duration, LabelName, Labels, ObjectName, Port, Quantity, text
from kaigen.kinds.block import Block
from kaigen.kinds.promotable import IMAGE, NAME

Text = Annotated[str, Meta(max_length=2048)]
ImageText = Annotated[str, IMAGE, text(r"^\S+$", min_length=1, max_length=512)]
Status = dict[str, Json]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class KoldunMetadata(ForeignMetadata):
    """Metadata of a Koldun resource, whose name may contain dots."""

    name: Annotated[ObjectName, Meta(description="Name of the resource. A dot becomes a dash in the name of the app.")]


class Foreign(Block):
    """Fields of every Koldun resource."""

    metadata: Annotated[KoldunMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    status: Annotated[Status | None, Meta(description="Written by the operator; ignored.")] = None


class SecretRef(Block):
    """A Secret."""

    name: Annotated[ObjectName, Meta(description="Name of the Secret.", examples=["minio-creds"])]
    namespace: Annotated[
        LabelName | None, Meta(description="Namespace of the Secret. Pods read only those of their own.")
    ] = None


class CacheSpec(Block):
    """A bucket of weights, which the operator passes to pods as variables that no program reads."""

    endpoint: Annotated[Text, Meta(description="URL of the S3 server; ignored.")]
    bucket: Annotated[Text, Meta(description="Name of the bucket; ignored.")]
    secret_ref: Annotated[SecretRef | None, Meta(description="Secret of the bucket; ignored.")] = None


class RuntimeNats(Block):
    """The queue that the operator's pods of a ring connect to, a block of later versions."""

    url: Annotated[Text, Meta(description="URL of the server; ignored.")]
    credentials_secret: Annotated[SecretRef | None, Meta(description="Secret of the server; ignored.")] = None


def _set_names(block: Block, document: Any) -> list[str]:
    """Return the fields that a mapping of a document sets, in its order.

    Args:
        block: the mapping as a block, which has checked the names.
        document: the mapping as plain data.
    """
    return [name for name in document if name in block.__struct_encode_fields__]


_IGNORED_IMAGE = "Image of a container that kaigen does not start; ignored."

WeightsType = Literal["q40", "q80", "f16", "f32", ""]
"""Types that the operator's converter writes, and the default; the runtime loads only q40 and f32."""


class ObjectStorage(Block):
    """The S3 server and its buckets."""

    endpoint: Annotated[
        Text, Meta(description="URL of the S3 server; empty for Amazon's.", examples=["http://minio:9000"])
    ]
    bucket_for_source: Annotated[Text, Meta(description="Bucket of the downloaded files.", examples=["models"])]
    bucket_for_convert: Annotated[
        Text, Meta(description="Bucket of the converted files.", examples=["models-converted"])
    ]
    secret_ref: Annotated[
        SecretRef | None,
        Meta(description="Secret with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, to write to the buckets."),
    ] = None


class Download(Block):
    """Settings of the download."""

    image: Annotated[Text | None, Meta(description=_IGNORED_IMAGE)] = None
    command: Annotated[list[str], Meta(description="Command of the operator's container; refused.")] = field(
        default_factory=list
    )
    args: Annotated[list[str], Meta(description="Arguments of the operator's container; refused.")] = field(
        default_factory=list
    )
    hugging_face_token_secret_ref: Annotated[
        SecretRef | None, Meta(description="Secret with a Hub token under the key `token`.")
    ] = None
    memory: Annotated[Quantity | None, Meta(description="Memory of the downloader.", examples=["2Gi"])] = None
    chunk_max_mi_b: Annotated[
        Int32 | None, Meta(description="Greatest part of an upload, in MiB; 0 for the default.")
    ] = None
    concurrency: Annotated[Int32 | None, Meta(description="Number of connections; 0 for the default.")] = None


class Conversion(Block):
    """Conversion to the format of distributed-llama."""

    image: Annotated[Text | None, Meta(description=_IGNORED_IMAGE)] = None
    command: Annotated[list[str], Meta(description="Command of the operator's container; refused.")] = field(
        default_factory=list
    )
    args: Annotated[list[str], Meta(description="Arguments of the operator's container; refused.")] = field(
        default_factory=list
    )
    weights_float_type: Annotated[
        WeightsType | None,
        Meta(description="Type of the weights: `q40` (default) or `f32`. The runtime cannot load the others."),
    ] = None
    convert_weights: Annotated[
        WeightsType | Literal["skip"] | None,
        Meta(description="A field of later versions with the meaning of `weightsFloatType`; `skip` is refused."),
    ] = None
    output_path: Annotated[
        Text | None,
        Meta(
            description="Bucket and prefix of the converted files, `s3://bucket/prefix`.",
            examples=["s3://models-converted/qwen3"],
        ),
    ] = None
    memory: Annotated[Quantity | None, Meta(description="Memory of the converter.", examples=["8Gi"])] = None
    rclone_image: Annotated[Text | None, Meta(description=_IGNORED_IMAGE)] = None
    tools_image: Annotated[Text | None, Meta(description=_IGNORED_IMAGE)] = None
    converter_version: Annotated[
        Text | None, Meta(description="Tag of the converter's scripts, which kaigen does not download; ignored.")
    ] = None
    dependencies: Annotated[
        dict[str, str], Meta(description="Python packages of the converter, a field of later versions; ignored.")
    ] = field(default_factory=dict)


class PersistentVolumes(Block):
    """How pods mount the buckets."""

    storage_class_name: Annotated[Text | None, Meta(description="StorageClass of the PersistentVolumes; ignored.")] = (
        None
    )
    capacity: Annotated[Quantity | None, Meta(description="Size of the volumes, if `pvcCapacity` states none.")] = None
    access_modes: Annotated[
        list[Text], Meta(description="Access modes of the PersistentVolumes; pods mount buckets read-only.")
    ] = field(default_factory=list)
    reclaim_policy: Annotated[
        Text | None, Meta(description="`Retain`, `Delete` or `Recycle`. Files in buckets are always kept.")
    ] = None
    csi_driver: Annotated[
        ObjectName | None, Meta(description="Name of the CSI driver. Default: `ru.yandex.s3.csi`.")
    ] = None
    csi_mounter: Annotated[
        Text | None, Meta(description="Program with which the driver mounts.", examples=["geesefs"])
    ] = None
    csi_options: Annotated[
        Text | None, Meta(description="Mount options.", examples=["--memory-limit 1000 --dir-mode 0777"])
    ] = None
    volume_attributes: Annotated[dict[str, str], Meta(description="Further attributes of the PersistentVolumes.")] = (
        field(default_factory=dict)
    )
    csi_secret_name: Annotated[
        ObjectName | None, Meta(description="Secret that the driver mounts with. Default: `csi-s3-secret`.")
    ] = None
    csi_secret_namespace: Annotated[
        LabelName | None, Meta(description="Namespace of that Secret. Default: `kube-system`.")
    ] = None
    pvc_storage_class_name: Annotated[
        Text | None, Meta(description="StorageClass of the claim, without `objectStorage`.")
    ] = None
    pvc_capacity: Annotated[Quantity | None, Meta(description="Size of the volumes.")] = None
    pvc_access_modes: Annotated[list[Text], Meta(description="Access modes of the claim, without `objectStorage`.")] = (
        field(default_factory=list)
    )


class ModelSpec(Block):
    """Where weights come from, where they are stored, and their conversion."""

    source_url: Annotated[
        Text,
        NAME,
        Meta(
            description="Repository on the Hugging Face Hub: its URL, with or without `/tree/REVISION`, or "
            "`owner/name`. Another URL is that of a Hub mirror's repository or of a file.",
            examples=["https://huggingface.co/Qwen/Qwen3-1.7B"],
        ),
    ]
    local_path: Annotated[
        Text,
        Meta(
            description="Folder of the downloaded files: `s3://bucket/prefix`, or a prefix in `bucketForSource`.",
            examples=["s3://models/Qwen/Qwen3-1.7B"],
        ),
    ]
    object_storage: Annotated[ObjectStorage | None, Meta(description="The S3 server and its buckets.")] = None
    pip_proxy: Annotated[Text | None, Meta(description="Proxy of pip, which kaigen does not run; ignored.")] = None
    launch_options: Annotated[
        list[Text], Meta(description="Options of `dllama`, which later versions of the operator read.")
    ] = field(default_factory=list)
    download: Annotated[Download | None, Meta(description="Settings of the download.")] = None
    conversion: Annotated[Conversion | None, Meta(description="Conversion to the format of distributed-llama.")] = None
    pv: Annotated[PersistentVolumes | None, Meta(description="How pods mount the buckets.")] = None
    replica_power: Annotated[
        Int32 | None,
        Meta(
            description="Number of workers of a ring, 2^p - 1 for p, where an Ingress states none. A field of later "
            "versions.",
            examples=[2],
        ),
    ] = None
    pre_converted: Annotated[
        bool, Meta(description="Whether the files are converted already. A field of later versions.")
    ] = False
    pre_converted_pvc_name: Annotated[
        ObjectName | None,
        Meta(description="PersistentVolumeClaim with the converted files. A field of later versions."),
    ] = field(default=None, name="preConvertedPVCName")
    pre_converted_size_bytes: Annotated[
        int | None, Meta(description="Size of these files. A field of later versions; ignored.")
    ] = None
    pre_converted_size_human: Annotated[
        Text | None, Meta(description="Size of these files, for people. A field of later versions; ignored.")
    ] = None


class Model(Foreign):
    """Koldun's `Model`."""

    api_version: Annotated[Literal["koldun.gorizond.io/v1"], Meta(description="Version of Koldun's API.")]
    kind: Annotated[Literal["Model"], Meta(description="Kind of the document.")]
    spec: Annotated[ModelSpec, Meta(description="Desired state.")]


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
    nats: Annotated[
        RuntimeNats | None, Meta(description="The queue of the operator's pods, a field of later versions; ignored.")
    ] = None


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
    nats: Annotated[
        RuntimeNats | None, Meta(description="The queue of the operator's pods, a field of later versions; ignored.")
    ] = None


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

    api_version: _API_VERSION
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

    api_version: _API_VERSION
    kind: Annotated[Literal["Session"], Meta(description="Kind of the document.")]
    spec: Annotated[SessionSpec, Meta(description="Desired state.")]


class TokenSpec(Block):
    """An API token."""

    hash: Annotated[Text, Meta(description="SHA-256 checksum of the token.")]
    disabled: Annotated[bool, Meta(description="Whether the token is invalid.")] = False
    metadata: Annotated[dict[str, str], Meta(description="Notes about the token.")] = field(default_factory=dict)


class Token(Foreign):
    """Koldun's `Token` of later versions, an API token by its hash."""

    api_version: _API_VERSION
    kind: Annotated[Literal["Token"], Meta(description="Kind of the document.")]
    spec: Annotated[TokenSpec, Meta(description="Desired state.")]
