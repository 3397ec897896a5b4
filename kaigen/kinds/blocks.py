"""Blocks that several kinds share: resources, placement, image, environment, security, volumes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from kaigen.kinds.base import (
    ADDRESS,
    ENV_NAME,
    FILE_PATH,
    NO_BLANKS,
    SHA256,
    Block,
    Choice,
    KeyRef,
    LabelName,
    Labels,
    Object,
    ObjectName,
    Quantity,
    TokenSecret,
)
from kaigen.kinds.promotable import IMAGE, NAME, REVISION

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
PodSecurity = Literal["restricted", "baseline"]


def short_or_block(value: Any) -> str:
    """Return the branch of a `short form | block` union for a value: a mapping is the block."""
    return "block" if isinstance(value, dict | Block) else "short"


class GpuShare(Choice):
    """A MIG slice, or a claim through Dynamic Resource Allocation, in place of a number of whole GPUs."""

    exactly_one: ClassVar[tuple[str, ...]] = ("profile", "deviceClassName")

    profile: Annotated[str, Field(pattern=r"^[1-9]g\.[0-9]+gb(\.me)?$")] | None = Field(
        None, description="MIG profile, as the node's device plugin names it.", examples=["1g.10gb"]
    )
    device_class_name: ObjectName | None = Field(
        None, description="DeviceClass to claim from (`resource.k8s.io/v1`).", examples=["gpu.nvidia.com"]
    )
    count: Annotated[int, Field(ge=1, le=64)] = Field(1, description="Number of slices or devices.")


Gpus = Annotated[
    Annotated[int, Field(ge=0, le=64), Tag("short")] | Annotated[GpuShare, Tag("block")],
    Discriminator(short_or_block),
]


class Resources(Block):
    """Resources of a container. CPU and memory are requests; memory is also the limit."""

    gpus: Gpus | None = Field(None, description="Number of whole GPUs, a MIG slice, or a device claim.")
    gpu_type: str | None = Field(
        None,
        description="GPU model by its catalogue name; becomes a node selector of the profile.",
        examples=["L4", "A100-80GB"],
    )
    instance_type: (
        Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=63)] | None
    ) = Field(
        None, description="Instance type of the node, as in the label `node.kubernetes.io/instance-type`."
    )
    cpu: Quantity | None = Field(None, description="CPU cores to request.", examples=["4", "500m"])
    memory: Quantity | None = Field(None, description="Memory to request, and its limit.", examples=["16Gi"])
    ephemeral_storage: Quantity | None = Field(
        None, description="Scratch disk of the container (limit of its writable layer and scratch volumes)."
    )
    shared_memory: Quantity | None = Field(None, description="Size of `/dev/shm`; it counts as memory.")


class Placement(Block):
    """Where pods may run, and their priority."""

    node_selector: Labels = Field({}, description="Labels that a node must have.")
    tolerations: list[Object] = Field([], description="Tolerations, as in a pod.")
    affinity: Object | None = Field(None, description="Affinity, as in a pod.")
    topology_spread: list[Object] = Field(
        [],
        description="Topology spread constraints, as in a pod. Default `labelSelector`: the pods of the app.",
    )
    priority_class_name: ObjectName | None = Field(None, description="PriorityClass of the pods.")
    runtime_class_name: Annotated[str, Field(max_length=253)] | None = Field(
        None,
        description='RuntimeClass of the pods. Default: the profile\'s for GPU pods. `""` sets none.',
    )
    queue: LabelName | None = Field(None, description="Kueue LocalQueue that admits the pods.")
    spot: bool = Field(
        False,
        description="Run on spot (preemptible) nodes, with the node selector and tolerations of the profile.",
    )


class ImageBlock(Block):
    """A container image and how to pull it."""

    ref: Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS), IMAGE] = Field(
        description="Image reference, preferably with a digest.",
        examples=["ghcr.io/org/train@sha256:…", "python:3.12-slim"],
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        None, description="When to pull the image. Default: the default of Kubernetes."
    )
    pull_secrets: list[ObjectName] = Field([], description="Names of Secrets of type dockerconfigjson.")


Image = Annotated[
    Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS), IMAGE, Tag("short")]
    | Annotated[ImageBlock, Tag("block")],
    Discriminator(short_or_block),
]


class EnvSource(Choice):
    """Source of an environment variable, read when the container starts."""

    exactly_one: ClassVar[tuple[str, ...]] = ("secret", "config")

    secret: KeyRef | None = Field(None, description="A key of a Secret.")
    config: KeyRef | None = Field(None, description="A key of a ConfigMap.")


def _env_shape(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int):
        return "number"
    return short_or_block(value)


EnvValue = Annotated[
    Annotated[str, Tag("short")]
    | Annotated[int, Tag("number")]
    | Annotated[bool, Tag("flag")]
    | Annotated[EnvSource, Tag("block")],
    Discriminator(_env_shape),
]
Env = dict[Annotated[str, Field(pattern=ENV_NAME, max_length=128)], EnvValue]


class Security(Block):
    """Security settings of the pods. The defaults satisfy Pod Security "restricted"."""

    pod_security: PodSecurity = Field(
        "restricted",
        description="Pod Security level that the pods satisfy. `baseline` allows the user of the image, root "
        "included, and appears in every diff.",
    )
    run_as_user: Annotated[int, Field(ge=0, le=2147483647)] | None = Field(
        None,
        description="User id of the processes. Default: 65532 for `restricted`. 0 requires `podSecurity: baseline`.",
    )
    fs_group: Annotated[int, Field(ge=0, le=2147483647)] | None = Field(
        None, description="Group id of mounted volumes. Default: `runAsUser`."
    )
    read_only_root_filesystem: bool | None = Field(
        None,
        description="Mount the root file system read-only. Default: true; false in containers with a GPU, whose "
        "driver hook writes to it.",
    )


RepoName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200), NAME
]
"""A repository on the Hugging Face Hub, `owner/name`."""
RevisionName = Annotated[
    str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"), REVISION
]
"""A commit, tag or branch of a repository."""


class HuggingFace(Block):
    """A repository on the Hugging Face Hub."""

    repo: RepoName = Field(description="Repository, `owner/name`.", examples=["Qwen/Qwen2.5-0.5B-Instruct"])
    revision: RevisionName = Field(
        "main",
        description="Commit (preferred), tag or branch.",
        examples=["7ae557604adf67be50417f59c2c2f167def9a775"],
    )
    include: list[Annotated[str, Field(min_length=1)]] = Field(
        [],
        description="Globs of files to download. Default: all files.",
        examples=[["*.safetensors", "*.json"]],
    )
    exclude: list[Annotated[str, Field(min_length=1)]] = Field([], description="Globs of files to skip.")
    token_secret: TokenSecret | None = Field(
        None,
        description="Secret with a Hub token, for gated or private repositories. Only the downloader reads it.",
    )
    endpoint: Annotated[str, Field(pattern=ADDRESS)] | None = Field(
        None, description="URL of a Hub mirror. Default: the public Hub."
    )


class HttpFile(Block):
    """A file at a URL, verified by its checksum."""

    url: Annotated[str, Field(pattern=ADDRESS, max_length=4000)] = Field(
        description="URL of the file.", examples=["https://models.example.com/qwen/model.safetensors"]
    )
    sha256: Annotated[str, Field(pattern=SHA256)] = Field(description="SHA-256 checksum, 64 hex digits.")
    path: Annotated[str, Field(pattern=FILE_PATH, max_length=1024)] | None = Field(
        None, description="Path of the file in the volume. Default: the last segment of the URL."
    )


class Http(Block):
    """Files from web servers."""

    files: Annotated[list[HttpFile], Field(min_length=1, max_length=1000)] = Field(
        description="The files, each with its checksum."
    )


class Source(Choice):
    """Source of model weights."""

    exactly_one: ClassVar[tuple[str, ...]] = ("huggingFace", "http")

    hugging_face: HuggingFace | None = Field(None, description="A repository on the Hugging Face Hub.")
    http: Http | None = Field(None, description="Files from web servers.")


class Volume(Block):
    """A PersistentVolumeClaim that kaigen creates."""

    size: Quantity = Field(description="Size to request, in bytes with a unit.", examples=["50Gi"])
    storage_class_name: Annotated[str, Field(max_length=253)] | None = Field(
        None,
        description='StorageClass. Default: the profile\'s. `""` uses the default class of the cluster.',
    )
    access_modes: Annotated[list[AccessMode], Field(min_length=1)] = Field(
        ["ReadWriteOnce"], description="Access modes of the claim."
    )


class Transfer(Block):
    """Settings of the downloader."""

    image: Image | None = Field(None, description="Image of the downloader. Default: kaigen's own.")
    memory: Quantity | None = Field(
        None,
        description="Memory of the downloader. Default: 512Mi, or more for a bucket with many or large parts.",
    )
    cpu: Quantity | None = Field(None, description="CPU of the downloader. Default: 500m.")
    concurrency: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None, description="Connections for one large file. Default: 4."
    )
    part_size: Quantity | None = Field(None, description="Bytes of one request. Default: 16Mi.")
    proxy: Annotated[str, Field(pattern=r"^https?://[^\s@]+$")] | None = Field(
        None, description="HTTP proxy for the download, without credentials."
    )
