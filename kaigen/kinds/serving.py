"""Blocks of a Topology: weights, adapters, replicas and their storage, and facts of a model."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import Json, JsonObject
from kaigen.kinds.base import (
    ADDRESS,
    DNS_LABEL,
    FILE_PATH,
    FLAG,
    NO_BLANKS,
    RELATIVE_PATH,
    AppName,
    LabelName,
    MountPath,
    ObjectName,
    ObjectRef,
    Quantity,
    TokenSecret,
    text,
)
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.blocks import HubRepository, RepoName, RevisionName
from kaigen.kinds.promotable import IMAGE

if TYPE_CHECKING:
    FileName = str
else:
    FileName = Literal["model.m", "tokenizer.t"]

EngineArgs = dict[Annotated[str, text(FLAG, max_length=120)], Json] | list[Annotated[str, Meta(min_length=1)]]
PoolName = Annotated[str, text(DNS_LABEL, min_length=1, max_length=20)]


class Facts(Block):
    """Shape and size of a model, from which kaigen plans its GPUs."""

    config: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)] | JsonObject,
        Meta(
            description="The model's `config.json`: a path relative to the spec, or its content.",
            examples=["qwen/config.json"],
        ),
    ]
    weights: Annotated[
        Quantity,
        Meta(description="Size of the weights that the engine loads, in bytes with a unit.", examples=["14.2Gi"]),
    ]


class PulledModel(Block):
    """A repository on the Hugging Face Hub that each engine downloads when it starts."""

    repo: Annotated[RepoName, Meta(description="Repository, `owner/name`.", examples=["Qwen/Qwen2.5-0.5B-Instruct"])]
    revision: Annotated[
        RevisionName,
        Meta(
            description="Commit (preferred), tag or branch of the weights, the tokenizer and the code.",
            examples=["7ae557604adf67be50417f59c2c2f167def9a775"],
        ),
    ] = "main"
    token_secret: Annotated[
        TokenSecret | None, Meta(description="Secret with a Hub token, for gated or private repositories.")
    ] = None
    endpoint: Annotated[
        Annotated[str, text(ADDRESS)] | None, Meta(description="URL of a Hub mirror. Default: the public Hub.")
    ] = None
    gguf: Annotated[
        Annotated[str, text(r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=60)] | None,
        Meta(
            description="Quantization of the GGUF file to load, of a repository with several such files.",
            examples=["Q4_K_M"],
        ),
    ] = None


class ImageVolume(Block):
    """Files of an OCI image, mounted read-only. Kubernetes 1.35 and later support this by default."""

    ref: Annotated[
        str,
        IMAGE,
        text(
            NO_BLANKS,
            min_length=1,
            max_length=512,
            description="Image reference, preferably with a digest.",
            examples=["ghcr.io/org/qwen-weights@sha256:…"],
        ),
    ]
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Folder in the image. Default: its root.", examples=["models/qwen"]),
    ] = None
    pull_policy: Annotated[
        Literal["Always", "IfNotPresent", "Never"] | None,
        Meta(description="When to pull the image. Default: the default of Kubernetes."),
    ] = None
    pull_secrets: Annotated[
        list[ObjectRef],
        Meta(description="Secrets of type dockerconfigjson.", examples=[[{"name": "registry-login"}]]),
    ] = field(default_factory=list)


class JobOutput(Block):
    """A folder of the volume in which a Job stores its results."""

    name: Annotated[AppName, Meta(description="A Job in the same namespace with an `output`.", examples=["finetune"])]
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Folder in the volume. Default: its root.", examples=["merged"]),
    ] = None


class ExistingVolume(Block):
    """A folder of an existing volume."""

    claim_name: Annotated[ObjectName, Meta(description="Name of the PersistentVolumeClaim.", examples=["models"])]
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Folder in the volume. Default: its root.", examples=["qwen/v3"]),
    ] = None


class WeightsVolume(ExistingVolume):
    """A folder of an existing volume with weights."""

    files: Annotated[
        dict[FileName, Annotated[str, text(FILE_PATH, max_length=1024)]],
        Meta(
            description="Names of files in the folder, by those that kaigen gives them. Only the engine "
            "`distributedLlama` has such files.",
            examples=[{"model.m": "dllama_model_qwen3_q40.m", "tokenizer.t": "dllama_tokenizer_qwen3.t"}],
        ),
    ] = field(default_factory=dict)


class ServedModel(Choice):
    """Source of the served weights."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "huggingFace", "image", "job", "volume", "folder")

    name: Annotated[
        AppName | None, Meta(description="A Model; its volume is mounted read-only.", examples=["qwen"])
    ] = None
    namespace: Annotated[
        LabelName | None,
        Meta(
            description="Namespace of the Model `name`. Default: that of the app. Another one requires that weights "
            "are in a bucket, which the app then mounts itself."
        ),
    ] = None
    hugging_face: Annotated[
        PulledModel | None,
        Meta(description="A repository on the Hugging Face Hub that each pod downloads when it starts."),
    ] = None
    image: Annotated[ImageVolume | None, Meta(description="An OCI image with the weights, mounted as a volume.")] = None
    job: Annotated[
        JobOutput | None,
        Meta(
            description="Weights that a Job writes to its `output`; mounted read-only. Pods wait until the Job has "
            "completed."
        ),
    ] = None
    volume: Annotated[
        WeightsVolume | None,
        Meta(description="Weights that are in an existing volume; mounted read-only. Nothing waits for them."),
    ] = None
    folder: Annotated[
        MountPath | None,
        Meta(description="Folder in the engine's image, for weights that the image contains.", examples=["/weights"]),
    ] = None
    mount_path: Annotated[
        MountPath | None,
        Meta(description="Folder of the weights of `name`, `image`, `job` or `volume`. Default: `/model`."),
    ] = None
    file: Annotated[
        Annotated[str, text(FILE_PATH, max_length=1024)] | None,
        Meta(
            description="File in the folder that the engine loads, for formats of a single file such as GGUF. Default: "
            "the folder.",
            examples=["Qwen3-0.6B-Q4_K_M.gguf"],
        ),
    ] = None
    facts: Annotated[
        Facts | None,
        Meta(
            description="Shape and size of the model, from which kaigen plans the GPUs. Default: those of the Model, "
            "or of the catalogue, if it has the repository."
        ),
    ] = None


ServedModelRef = AppName | ServedModel


class Adapter(Choice):
    """A LoRA adapter: vLLM serves it under its own name, kaigen's own server adds it to the model."""

    exactly_one: ClassVar[tuple[str, ...]] = ("model", "job", "volume", "image", "huggingFace")

    name: Annotated[
        str,
        text(
            DNS_LABEL,
            min_length=1,
            max_length=50,
            description="Name of the adapter, and with vLLM its model name in requests.",
            examples=["support"],
        ),
    ]
    model: Annotated[AppName | None, Meta(description="A Model in the same namespace with the adapter.")] = None
    job: Annotated[
        JobOutput | None,
        Meta(
            description="An adapter that a Job writes to its `output`, such as a fine-tune. Pods wait until the Job "
            "has completed."
        ),
    ] = None
    volume: Annotated[ExistingVolume | None, Meta(description="A folder of an existing volume.")] = None
    image: Annotated[ImageVolume | None, Meta(description="An OCI image with the adapter, mounted as a volume.")] = None
    hugging_face: Annotated[
        HubRepository | None,
        Meta(description="A repository on the Hub that kaigen's downloader downloads before the engine starts."),
    ] = None
    strength: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Factor of the adapter's weights, from 0 to 1, in the sum with the model. Default: 1."),
    ] = None


class Shape(Block):
    """Number of replicas, and the GPUs and nodes of each."""

    replicas: Annotated[
        int, Meta(ge=0, le=1000, description="Number of replicas, each of which answers requests on its own.")
    ] = 1
    nodes: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | None,
        Meta(description="Nodes of one replica, with one pod on each. Default: as many as the model needs."),
    ] = None
    tensor_parallel: Annotated[
        Annotated[int, Meta(ge=1, le=512)] | None,
        Meta(description="GPUs that share each layer. Default: derived from the GPUs of a node."),
    ] = None
    pipeline_parallel: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | None,
        Meta(description="Stages that the layers are split into. Default: the number of nodes."),
    ] = None
    data_parallel: Annotated[
        Annotated[int, Meta(ge=1, le=512)] | None, Meta(description="Copies of the model in one engine. Default: 1.")
    ] = None
    executor: Annotated[
        Literal["native", "ray"] | None,
        Meta(
            description="How vLLM runs on several nodes: natively or with Ray. Default: what the version of the "
            "engine supports."
        ),
    ] = None
    groups: Annotated[
        Literal["leaderWorkerSet", "statefulSet"] | None,
        Meta(description="Workload kind for several nodes. Default: LeaderWorkerSet if the profile has it."),
    ] = None


class Storage(Block):
    """A volume for each pod, kept across restarts, for downloaded weights and compiled kernels."""

    size: Annotated[Quantity, Meta(description="Size to request, in bytes with a unit.", examples=["100Gi"])]
    storage_class_name: Annotated[
        Annotated[str, Meta(max_length=253)] | None,
        Meta(description='StorageClass. Default: the profile\'s. `""` uses the default class of the cluster.'),
    ] = None
    retain: Annotated[
        bool, Meta(description="Keep the volumes of pods that are scaled down, and of a deleted spec.")
    ] = False
