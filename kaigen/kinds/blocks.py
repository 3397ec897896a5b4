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


def _shape(value: Any) -> str:
    """Which branch of a `short form | block` union a value means: a mapping is the block."""
    return "block" if isinstance(value, dict | Block) else "short"


class GpuShare(Choice):
    """GPUs that are not whole cards by count: a MIG slice, or a claim through Dynamic Resource Allocation."""

    exactly_one: ClassVar[tuple[str, ...]] = ("profile", "deviceClassName")

    profile: Annotated[str, Field(pattern=r"^[1-9]g\.[0-9]+gb(\.me)?$")] | None = Field(
        None, description="MIG profile, as the node's device plugin names it.", examples=["1g.10gb"]
    )
    device_class_name: ObjectName | None = Field(
        None, description="DeviceClass to claim from (`resource.k8s.io/v1`).", examples=["gpu.nvidia.com"]
    )
    count: Annotated[int, Field(ge=1, le=64)] = Field(1, description="How many.")


Gpus = Annotated[
    Annotated[int, Field(ge=0, le=64), Tag("short")] | Annotated[GpuShare, Tag("block")],
    Discriminator(_shape),
]


class Resources(Block):
    """What a container is given. CPU and memory are requests; memory is also the limit."""

    gpus: Gpus | None = Field(None, description="Whole GPUs by count, a MIG slice, or a device claim.")
    gpu_type: str | None = Field(
        None,
        description="GPU model by its catalogue name; the profile turns it into a node selector.",
        examples=["L4", "A100-80GB"],
    )
    instance_type: (
        Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=63)] | None
    ) = Field(None, description="Node's instance type, as in the label `node.kubernetes.io/instance-type`.")
    cpu: Quantity | None = Field(None, description="CPU cores to request.", examples=["4", "500m"])
    memory: Quantity | None = Field(None, description="Memory to request, and its limit.", examples=["16Gi"])
    ephemeral_storage: Quantity | None = Field(
        None, description="Scratch disk of the container (limit of its writable layer and scratch volumes)."
    )
    shared_memory: Quantity | None = Field(None, description="Size of `/dev/shm`; it counts as memory.")


class Placement(Block):
    """Where pods may run, and in which order of importance."""

    node_selector: Labels = Field({}, description="Labels that a node must have.")
    tolerations: list[Object] = Field([], description="Taints that are accepted, as in a pod.")
    affinity: Object | None = Field(None, description="Affinity, as in a pod.")
    topology_spread: list[Object] = Field(
        [],
        description="Topology spread constraints, as in a pod; one without `labelSelector` counts the app's own pods.",
    )
    priority_class_name: ObjectName | None = Field(None, description="PriorityClass of the pods.")
    runtime_class_name: Annotated[str, Field(max_length=253)] | None = Field(
        None,
        description='RuntimeClass of the pods. Default: the profile\'s for GPU pods. `""` asks for none.',
    )
    queue: LabelName | None = Field(None, description="Kueue LocalQueue that admits the work.")
    spot: bool = Field(
        False, description="Run on spot (preemptible) nodes: the profile's selector and tolerations."
    )


class ImageBlock(Block):
    """A container image, with how to pull it."""

    ref: Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS), IMAGE] = Field(
        description="Image reference; a digest is best.",
        examples=["ghcr.io/org/train@sha256:…", "python:3.12-slim"],
    )
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        None, description="When to pull. Default: Kubernetes' own rule."
    )
    pull_secrets: list[ObjectName] = Field([], description="Names of Secrets of type dockerconfigjson.")


Image = Annotated[
    Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS), IMAGE, Tag("short")]
    | Annotated[ImageBlock, Tag("block")],
    Discriminator(_shape),
]


class EnvSource(Choice):
    """Where a variable's value is read from when the container starts."""

    exactly_one: ClassVar[tuple[str, ...]] = ("secret", "config")

    secret: KeyRef | None = Field(None, description="A key of a Secret.")
    config: KeyRef | None = Field(None, description="A key of a ConfigMap.")


def _env_shape(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int):
        return "number"
    return _shape(value)


EnvValue = Annotated[
    Annotated[str, Tag("short")]
    | Annotated[int, Tag("number")]
    | Annotated[bool, Tag("flag")]
    | Annotated[EnvSource, Tag("block")],
    Discriminator(_env_shape),
]
Env = dict[Annotated[str, Field(pattern=ENV_NAME, max_length=128)], EnvValue]


class Security(Block):
    """How far the pods are locked in. The defaults satisfy Pod Security "restricted"."""

    pod_security: PodSecurity = Field(
        "restricted",
        description="Pod Security level that the pods satisfy. `baseline` lets the image's own user run, root "
        "included, and is shown in every diff.",
    )
    run_as_user: Annotated[int, Field(ge=0, le=2147483647)] | None = Field(
        None,
        description="User id of the processes. Default 65532 under `restricted`. 0 needs `podSecurity: baseline`.",
    )
    fs_group: Annotated[int, Field(ge=0, le=2147483647)] | None = Field(
        None, description="Group id that owns mounted volumes. Default: as `runAsUser`."
    )
    read_only_root_filesystem: bool | None = Field(
        None,
        description="Default: true, but false in containers with a GPU, whose driver hook writes to the root file "
        "system.",
    )


RepoName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200), NAME
]
"""A repository on the Hugging Face Hub, `owner/name`."""
RevisionName = Annotated[
    str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"), REVISION
]
"""What a repository calls a state of itself: a commit, tag or branch."""


class HuggingFace(Block):
    """A repository on the Hugging Face Hub."""

    repo: RepoName = Field(description="Repository, `owner/name`.", examples=["Qwen/Qwen2.5-0.5B-Instruct"])
    revision: RevisionName = Field(
        "main",
        description="Commit (best), tag or branch.",
        examples=["7ae557604adf67be50417f59c2c2f167def9a775"],
    )
    include: list[Annotated[str, Field(min_length=1)]] = Field(
        [], description="Globs of files to fetch; all when empty.", examples=[["*.safetensors", "*.json"]]
    )
    exclude: list[Annotated[str, Field(min_length=1)]] = Field([], description="Globs of files to leave out.")
    token_secret: TokenSecret | None = Field(
        None,
        description="Secret with a Hub token, for gated or private repositories. Only the downloader gets it.",
    )
    endpoint: Annotated[str, Field(pattern=ADDRESS)] | None = Field(
        None, description="Address of a Hub mirror. Default: the public Hub."
    )


class HttpFile(Block):
    """A file at an address, proven by its checksum."""

    url: Annotated[str, Field(pattern=ADDRESS, max_length=4000)] = Field(
        description="Where it is.", examples=["https://models.example.com/qwen/model.safetensors"]
    )
    sha256: Annotated[str, Field(pattern=SHA256)] = Field(description="Its checksum, 64 hex digits.")
    path: Annotated[str, Field(pattern=FILE_PATH, max_length=1024)] | None = Field(
        None, description="Where it goes. Default: the last part of the address."
    )


class Http(Block):
    """Files of web servers."""

    files: Annotated[list[HttpFile], Field(min_length=1, max_length=1000)] = Field(
        description="The files, each with its checksum."
    )


class Source(Choice):
    """Where weights come from."""

    exactly_one: ClassVar[tuple[str, ...]] = ("huggingFace", "http")

    hugging_face: HuggingFace | None = Field(None, description="A repository on the Hugging Face Hub.")
    http: Http | None = Field(None, description="Files of web servers.")


class Volume(Block):
    """A PersistentVolumeClaim that kaigen makes."""

    size: Quantity = Field(description="Size to ask for, in bytes with a unit.", examples=["50Gi"])
    storage_class_name: Annotated[str, Field(max_length=253)] | None = Field(
        None,
        description="StorageClass. Default: the profile's. `\"\"` leaves the choice to the cluster's default class.",
    )
    access_modes: Annotated[list[AccessMode], Field(min_length=1)] = Field(
        ["ReadWriteOnce"], description="Access modes of the claim."
    )


class Transfer(Block):
    """How weights are moved."""

    image: Image | None = Field(None, description="Downloader image instead of kaigen's own.")
    memory: Quantity | None = Field(
        None,
        description="Memory of the downloader. Default 512Mi, or more for a bucket with many or large parts.",
    )
    cpu: Quantity | None = Field(None, description="CPU of the downloader. Default 500m.")
    concurrency: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None, description="Connections for one large file. Default 4."
    )
    part_size: Quantity | None = Field(None, description="Bytes that one request fetches. Default 16Mi.")
    proxy: Annotated[str, Field(pattern=r"^https?://[^\s@]+$")] | None = Field(
        None, description="HTTP proxy for the download; without credentials."
    )
