"""The kind `Job`: work that ends."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, JsonValue, Tag

from kaigen.kinds.base import (
    ADDRESS,
    FILE_PATH,
    SHA256,
    AppName,
    Block,
    Choice,
    Duration,
    KeyRef,
    Metadata,
    MountPath,
    Object,
)
from kaigen.kinds.blocks import Env, Image, Placement, Resources, Security, Source, Transfer, Volume
from kaigen.kinds.entry import API_VERSION


class ModelUse(Choice):
    """The weights a container reads."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "source")

    name: AppName | None = Field(None, description="A Model of the same namespace.", examples=["qwen"])
    source: Source | None = Field(
        None,
        description="Weights fetched by this very pod, before its container starts, into `output.volume`. "
        "For weights that nothing else uses.",
    )
    mount_path: MountPath = Field("/model", description="Folder that holds the weights in the container.")
    transfer: Transfer = Field(
        default_factory=dict, validate_default=True, description="How weights of `source` are moved."
    )


def _shape(value: Any) -> str:
    return "block" if isinstance(value, dict | Block) else "short"


ModelRef = Annotated[
    Annotated[AppName, Tag("short")] | Annotated[ModelUse, Tag("block")], Discriminator(_shape)
]


class Input(Choice):
    """A file that is fetched before the work begins."""

    exactly_one: ClassVar[tuple[str, ...]] = ("url", "secret")

    url: Annotated[str, Field(pattern=ADDRESS, max_length=4000)] | None = Field(
        None, description="Where it is.", examples=["https://data.example.com/train.parquet"]
    )
    secret: KeyRef | None = Field(
        None,
        description="Key of a Secret that holds its address, such as a signed one. Only the downloader gets it.",
    )
    sha256: Annotated[str, Field(pattern=SHA256)] | None = Field(
        None, description="Its checksum, 64 hex digits. Default: it is not proven."
    )
    path: Annotated[str, Field(pattern=FILE_PATH, max_length=1024)] | None = Field(
        None,
        description="Where it goes in the folder. Default: the last part of `url`.",
        examples=["train.parquet"],
    )


class Inputs(Block):
    """Files that each pod fetches before its container starts, and where it finds them."""

    files: Annotated[list[Input], Field(min_length=1, max_length=1000)] = Field(description="The files.")
    mount_path: MountPath = Field("/inputs", description="Folder that holds them in the container.")
    transfer: Transfer = Field(default_factory=dict, validate_default=True, description="How they are moved.")


def _inputs_shape(value: Any) -> str:
    return "list" if isinstance(value, list) else "block"


InputsRef = Annotated[
    Annotated[list[Input], Field(min_length=1, max_length=1000), Tag("list")]
    | Annotated[Inputs, Tag("block")],
    Discriminator(_inputs_shape),
]


class OutputVolume(Volume):
    """The volume that results are written to."""

    mount_path: MountPath = Field(
        "/output", description="Folder that results are written to in the container."
    )
    retain: bool = Field(
        True, description="Keep the volume, and the results in it, when the spec is deleted."
    )


class Output(Choice):
    """Where results go."""

    exactly_one: ClassVar[tuple[str, ...]] = ("volume",)

    volume: OutputVolume = Field(description="A volume of the cluster.")


class JobSpec(Choice):
    """What runs, on what, with which inputs and outputs."""

    exactly_one: ClassVar[tuple[str, ...]] = ("image", "template")

    image: Image | None = Field(
        None, description="Image of the container; a reference, or a block with how to pull it."
    )
    template: Object | None = Field(
        None,
        description="A pod template taken as it is, in place of an image; `metadata` and `spec` as in a Job. Of the "
        "other fields `retries`, `deadline`, `placement.queue` and `security.podSecurity` apply.",
    )
    command: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="Entry point. Default: the image's."
    )
    args: list[str] | None = Field(None, description="Arguments of the entry point. Default: the image's.")
    env: Env = Field({}, description="Environment variables: a value, or where to read it from.")
    params: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=120)], JsonValue] = (
        Field(
            {},
            description="Parameters of the work, given as `PARAM_*` variables and in `/etc/kaigen/params.json`.",
        )
    )
    model: ModelRef | None = Field(None, description="Weights to read: the name of a Model, or a block.")
    inputs: InputsRef | None = Field(
        None, description="Files to fetch into `/inputs` before the work begins: a list, or a block."
    )
    output: Output | None = Field(None, description="Where results go.")
    resources: Resources = Field(
        default_factory=dict, validate_default=True, description="What the container is given."
    )
    placement: Placement = Field(
        default_factory=dict, validate_default=True, description="Where the pods run."
    )
    security: Security = Field(
        default_factory=dict, validate_default=True, description="How far the pods are locked in."
    )
    nodes: Annotated[int, Field(ge=1, le=1024)] = Field(
        1,
        description="How many pods work together, one a node. More than one: an Indexed Job with stable host names and "
        "`NODE_RANK`, `NNODES`, `MASTER_ADDR`, `MASTER_PORT` as torchrun reads them.",
    )
    retries: Annotated[int, Field(ge=0, le=100)] = Field(
        2, description="How often a failed pod is tried again."
    )
    deadline: Duration | None = Field(None, description="Longest time the work may take, retries included.")


class Job(Block):
    """Work that ends: fine-tuning, evaluation, batch inference."""

    api_version: Literal["kaigen.dev/v1alpha1"] = Field(API_VERSION, description="Version of kaigen's kinds.")
    kind: Literal["Job"] = Field("Job", description="The kind.")
    metadata: Metadata = Field(description="Who the app is.")
    spec: JobSpec = Field(description="What is wanted.")
