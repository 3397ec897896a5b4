"""The kind `Job`: a workload that runs to completion."""

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
from kaigen.kinds.blocks import (
    Env,
    Image,
    Placement,
    Resources,
    Security,
    Source,
    Transfer,
    Volume,
    short_or_block,
)
from kaigen.kinds.entry import API_VERSION


class ModelUse(Choice):
    """Weights that a container reads."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "source")

    name: AppName | None = Field(None, description="A Model in the same namespace.", examples=["qwen"])
    source: Source | None = Field(
        None,
        description="Weights that this pod downloads to `output.volume` before its container starts. "
        "For weights that nothing else uses.",
    )
    mount_path: MountPath = Field("/model", description="Folder of the weights in the container.")
    transfer: Transfer = Field(
        default_factory=dict, validate_default=True, description="Settings of the downloader for `source`."
    )


ModelRef = Annotated[
    Annotated[AppName, Tag("short")] | Annotated[ModelUse, Tag("block")], Discriminator(short_or_block)
]


class Input(Choice):
    """A file that is downloaded before the container starts."""

    exactly_one: ClassVar[tuple[str, ...]] = ("url", "secret")

    url: Annotated[str, Field(pattern=ADDRESS, max_length=4000)] | None = Field(
        None, description="URL of the file.", examples=["https://data.example.com/train.parquet"]
    )
    secret: KeyRef | None = Field(
        None,
        description="Key of a Secret with the URL, such as a signed URL. Only the downloader reads it.",
    )
    sha256: Annotated[str, Field(pattern=SHA256)] | None = Field(
        None, description="SHA-256 checksum, 64 hex digits. Default: the file is not verified."
    )
    path: Annotated[str, Field(pattern=FILE_PATH, max_length=1024)] | None = Field(
        None,
        description="Path of the file in the folder. Default: the last segment of `url`.",
        examples=["train.parquet"],
    )


class Inputs(Block):
    """Files that each pod downloads before its container starts."""

    files: Annotated[list[Input], Field(min_length=1, max_length=1000)] = Field(description="The files.")
    mount_path: MountPath = Field("/inputs", description="Folder of the files in the container.")
    transfer: Transfer = Field(
        default_factory=dict, validate_default=True, description="Settings of the downloader."
    )


def _inputs_shape(value: Any) -> str:
    return "list" if isinstance(value, list) else "block"


InputsRef = Annotated[
    Annotated[list[Input], Field(min_length=1, max_length=1000), Tag("list")]
    | Annotated[Inputs, Tag("block")],
    Discriminator(_inputs_shape),
]


class OutputVolume(Volume):
    """The volume for results."""

    mount_path: MountPath = Field("/output", description="Folder for results in the container.")
    retain: bool = Field(True, description="Keep the volume with the results when the spec is deleted.")


class Output(Choice):
    """Where results go."""

    exactly_one: ClassVar[tuple[str, ...]] = ("volume",)

    volume: OutputVolume = Field(description="A volume of the cluster.")


class JobSpec(Choice):
    """What runs, with which inputs, outputs and resources."""

    exactly_one: ClassVar[tuple[str, ...]] = ("image", "template")

    image: Image | None = Field(
        None, description="Image of the container: a reference, or a block with pull settings."
    )
    template: Object | None = Field(
        None,
        description="A pod template that is used unchanged, in place of an image; `metadata` and `spec` as in a Job. "
        "Of the other fields, `retries`, `deadline`, `placement.queue` and `security.podSecurity` apply.",
    )
    command: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="Entry point. Default: the image's."
    )
    args: list[str] | None = Field(None, description="Arguments of the entry point. Default: the image's.")
    env: Env = Field({}, description="Environment variables: a value, or its source.")
    params: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=120)], JsonValue] = (
        Field(
            {},
            description="Parameters of the job, as `PARAM_*` variables and in `/etc/kaigen/params.json`.",
        )
    )
    model: ModelRef | None = Field(None, description="Weights to read: the name of a Model, or a block.")
    inputs: InputsRef | None = Field(
        None, description="Files to download to `/inputs` before the container starts: a list, or a block."
    )
    output: Output | None = Field(None, description="Where results go.")
    resources: Resources = Field(
        default_factory=dict, validate_default=True, description="Resources of the container."
    )
    placement: Placement = Field(
        default_factory=dict, validate_default=True, description="Where the pods run."
    )
    security: Security = Field(
        default_factory=dict, validate_default=True, description="Security settings of the pods."
    )
    nodes: Annotated[int, Field(ge=1, le=1024)] = Field(
        1,
        description="Number of pods that work together, each on its own node. They have stable host names and the "
        "variables of torchrun: `PET_NNODES`, `PET_NODE_RANK`, `PET_MASTER_ADDR`, `PET_MASTER_PORT` and "
        "`PET_NPROC_PER_NODE`, the first four also without `PET_`.",
    )
    groups: Literal["jobSet", "indexedJob"] | None = Field(
        None, description="Workload kind for several nodes. Default: JobSet if the profile has it."
    )
    retries: Annotated[int, Field(ge=0, le=100)] = Field(
        2, description="Number of retries of a failed pod. With several nodes, all pods start again."
    )
    deadline: Duration | None = Field(
        None, description="Time limit of the job, including retries; of each attempt with a JobSet."
    )


class Job(Block):
    """A workload that runs to completion: fine-tuning, evaluation, batch inference."""

    api_version: Literal["kaigen.dev/v1alpha1"] = Field(API_VERSION, description="Version of kaigen's kinds.")
    kind: Literal["Job"] = Field("Job", description="Kind of the document.")
    metadata: Metadata = Field(description="Name, namespace, labels and annotations of the app.")
    spec: JobSpec = Field(description="Desired state.")
