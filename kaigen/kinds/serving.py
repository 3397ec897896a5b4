"""Blocks of a Topology: weights, adapters, replicas and their storage."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from kaigen.kinds.base import (
    ADDRESS,
    DNS_LABEL,
    NO_BLANKS,
    RELATIVE_PATH,
    AppName,
    Block,
    Choice,
    MountPath,
    ObjectName,
    Quantity,
    TokenSecret,
)
from kaigen.kinds.blocks import HuggingFace, RepoName, RevisionName, short_or_block
from kaigen.kinds.promotable import IMAGE


class PulledModel(Block):
    """A repository on the Hugging Face Hub that each engine downloads when it starts."""

    repo: RepoName = Field(description="Repository, `owner/name`.", examples=["Qwen/Qwen2.5-0.5B-Instruct"])
    revision: RevisionName = Field(
        "main",
        description="Commit (preferred), tag or branch of the weights, the tokenizer and the code.",
        examples=["7ae557604adf67be50417f59c2c2f167def9a775"],
    )
    token_secret: TokenSecret | None = Field(
        None, description="Secret with a Hub token, for gated or private repositories."
    )
    endpoint: Annotated[str, Field(pattern=ADDRESS)] | None = Field(
        None, description="URL of a Hub mirror. Default: the public Hub."
    )


class ImageVolume(Block):
    """Files of an OCI image, mounted read-only. Kubernetes 1.35 and later support this by default."""

    ref: Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS), IMAGE] = Field(
        description="Image reference, preferably with a digest.",
        examples=["ghcr.io/org/qwen-weights@sha256:…"],
    )
    path: Annotated[str, Field(pattern=RELATIVE_PATH, max_length=1024)] | None = Field(
        None, description="Folder in the image. Default: its root.", examples=["models/qwen"]
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        None, description="When to pull the image. Default: the default of Kubernetes."
    )
    pull_secrets: list[ObjectName] = Field([], description="Names of Secrets of type dockerconfigjson.")


class JobOutput(Block):
    """A folder of the volume in which a Job stores its results."""

    name: AppName = Field(description="A Job in the same namespace with an `output`.", examples=["finetune"])
    path: Annotated[str, Field(pattern=RELATIVE_PATH, max_length=1024)] | None = Field(
        None, description="Folder in the volume. Default: its root.", examples=["merged"]
    )


class ServedModel(Choice):
    """Source of the served weights."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "huggingFace", "image", "job", "folder")

    name: AppName | None = Field(
        None, description="A Model in the same namespace; its volume is mounted read-only.", examples=["qwen"]
    )
    hugging_face: PulledModel | None = Field(
        None, description="A repository on the Hugging Face Hub that each pod downloads when it starts."
    )
    image: ImageVolume | None = Field(None, description="An OCI image with the weights, mounted as a volume.")
    job: JobOutput | None = Field(
        None,
        description="Weights that a Job wrote to its `output`; mounted read-only. Argo CD and Flux wait for the Job.",
    )
    folder: MountPath | None = Field(
        None,
        description="Folder in the engine's image, for weights that the image contains.",
        examples=["/weights"],
    )
    mount_path: MountPath | None = Field(
        None,
        description="Folder of the weights of `name`, `image` or `job` in the container. Default: `/model`.",
    )


ServedModelRef = Annotated[
    Annotated[AppName, Tag("short")] | Annotated[ServedModel, Tag("block")], Discriminator(short_or_block)
]


class AdapterVolume(Block):
    """A folder of an existing volume."""

    claim_name: ObjectName = Field(description="Name of the PersistentVolumeClaim.", examples=["adapters"])
    path: Annotated[str, Field(pattern=RELATIVE_PATH, max_length=1024)] | None = Field(
        None, description="Folder in the volume. Default: its root.", examples=["support/v3"]
    )


class Adapter(Choice):
    """A LoRA adapter that is served with the base model, under its own name."""

    exactly_one: ClassVar[tuple[str, ...]] = ("model", "volume", "image", "huggingFace")

    name: Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=50)] = Field(
        description="Model name of the adapter in requests.", examples=["support"]
    )
    model: AppName | None = Field(None, description="A Model in the same namespace with the adapter.")
    volume: AdapterVolume | None = Field(None, description="A folder of an existing volume.")
    image: ImageVolume | None = Field(None, description="An OCI image with the adapter, mounted as a volume.")
    hugging_face: HuggingFace | None = Field(
        None,
        description="A repository on the Hub that kaigen's downloader downloads before the engine starts.",
    )


class Shape(Block):
    """Number of replicas, and the GPUs and nodes of each."""

    replicas: Annotated[int, Field(ge=0, le=1000)] = Field(
        1, description="Number of replicas, each of which answers requests on its own."
    )
    nodes: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None,
        description="Nodes of one replica, with one pod on each. Default: as many as the model needs.",
    )
    tensor_parallel: Annotated[int, Field(ge=1, le=512)] | None = Field(
        None, description="GPUs that share each layer. Default: derived from the GPUs of a node."
    )
    pipeline_parallel: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None, description="Stages that the layers are split into. Default: the number of nodes."
    )
    data_parallel: Annotated[int, Field(ge=1, le=512)] | None = Field(
        None, description="Copies of the model in one engine. Default: 1."
    )
    executor: Literal["native", "ray"] | None = Field(
        None,
        description="How vLLM runs on several nodes: natively or with Ray. Default: what the version of the engine "
        "supports.",
    )
    groups: Literal["leaderWorkerSet", "statefulSet"] | None = Field(
        None,
        description="Workload kind for several nodes. Default: LeaderWorkerSet if the profile has it.",
    )


class Storage(Block):
    """A volume for each pod, kept across restarts, for downloaded weights and compiled kernels."""

    size: Quantity = Field(description="Size to request, in bytes with a unit.", examples=["100Gi"])
    storage_class_name: Annotated[str, Field(max_length=253)] | None = Field(
        None,
        description='StorageClass. Default: the profile\'s. `""` uses the default class of the cluster.',
    )
    retain: bool = Field(
        False, description="Keep the volumes of pods that are scaled down, and of a deleted spec."
    )
