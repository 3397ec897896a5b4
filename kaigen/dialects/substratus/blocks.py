"""Blocks that Substratus' kinds share: image and build, resources, references, parameters."""

from typing import Annotated

from msgspec import Meta, field

from kaigen.core.json_types import Json
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import ENV_NAME, NO_BLANKS, RELATIVE_PATH, AppName, LabelName, text
from kaigen.kinds.block import Block
from kaigen.kinds.blocks import Params
from kaigen.kinds.promotable import IMAGE, NAME

ImageText = Annotated[str, IMAGE, text(NO_BLANKS, min_length=1, max_length=512)]
GitName = Annotated[str, NAME, text(r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", max_length=200)]
Url = Annotated[str, text(r"^https?://[^\s$@#?]+$", max_length=1024)]
Count = Annotated[int, Meta(ge=0, le=64)]
Status = dict[str, Json]
Env = dict[Annotated[str, text(ENV_NAME, max_length=128)], str]

_COMMIT = Meta(
    description="Commit to build, 40 hex digits. The operator has no such field, and builds what the branch has then."
)


class Foreign(Block):
    """Fields of every resource."""

    metadata: Annotated[ForeignMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    status: Annotated[Status | None, Meta(description="Written by the operator; ignored.")] = None


class DesignGit(Block):
    """A Git repository with a Dockerfile, in the shape of the design."""

    url: Annotated[Url, Meta(description="URL of the repository.")]
    ref: Annotated[GitName | None, Meta(description="Commit, branch or tag.", examples=["refs/branch/main"])] = None
    commit: Annotated[GitName | None, _COMMIT] = None
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Folder of the repository with the Dockerfile. Default: its root."),
    ] = None


class Container(Block):
    """The image of a resource, in the shape of the design."""

    image: Annotated[ImageText | None, Meta(description="An existing image.")] = None
    git: Annotated[DesignGit | None, Meta(description="A repository to build the image from.")] = None
    local: Annotated[bool, Meta(description="Build the image from the local folder; only for a Notebook.")] = False


class Git(Block):
    """A Git repository with a Dockerfile."""

    url: Annotated[Url, Meta(description="URL of the repository.")]
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Folder of the repository with the Dockerfile. Default: its root."),
    ] = None
    tag: Annotated[GitName | None, Meta(description="Tag; it takes precedence over `branch`.")] = None
    branch: Annotated[GitName | None, Meta(description="Branch. Default: that of the repository.")] = None
    commit: Annotated[GitName | None, _COMMIT] = None


class Upload(Block):
    """A local folder that the command line of Substratus uploads."""

    md5_checksum: Annotated[Annotated[str, text(r"^[a-fA-F0-9]{32}$")], Meta(description="MD5 of the archive.")] = (
        field(name="md5Checksum")
    )
    request_id: Annotated[str, Meta(description="Identity of the upload.")] = field(name="requestID")


class Build(Block):
    """How the image is built."""

    git: Annotated[Git | None, Meta(description="A repository to build the image from.")] = None
    upload: Annotated[Upload | None, Meta(description="A local folder to build the image from.")] = None


class Gpu(Block):
    """GPUs of the container."""

    type: Annotated[
        Annotated[str, text(NO_BLANKS, min_length=1, max_length=63)] | None,
        Meta(
            description="GPU model: `nvidia-t4`, `nvidia-l4`, `nvidia-a100` (40 GB), or a name of `kaigen gpus list`.",
            examples=["nvidia-l4"],
        ),
    ] = None
    count: Annotated[Count | None, Meta(description="Number of GPUs.")] = None


class Resources(Block):
    """Resources of the container."""

    cpu: Annotated[int, Meta(ge=0, le=1024, description="CPU cores.")] = 2
    memory: Annotated[int, Meta(ge=0, le=65536, description="Memory in GiB.")] = 10
    disk: Annotated[int, Meta(ge=0, le=65536, description="Scratch disk in GiB.")] = 10
    gpu: Annotated[Gpu | None, Meta(description="GPUs.")] = None
    gpu_count: Annotated[
        Count | None, Meta(description="Number of GPUs, in the shape of the design.", examples=[4])
    ] = None
    type: Annotated[
        Annotated[str, text(NO_BLANKS, min_length=1, max_length=63)] | None,
        Meta(description="GPU model, in the shape of the design.", examples=["L4"]),
    ] = None


class Ref(Block):
    """A Model or a Dataset."""

    name: Annotated[AppName, Meta(description="Its name.", examples=["falcon-7b"])]
    namespace: Annotated[
        LabelName | None,
        Meta(
            description="Its namespace, in the shape of the design. Another one only for a server of a Model "
            "in a bucket."
        ),
    ] = None


class Run(Block):
    """A run of the container, in the shape of the design."""

    params: Annotated[Params, Meta(description="Parameters of the container.")] = field(default_factory=dict)
    resources: Annotated[Resources | None, Meta(description="Resources of the container.")] = None


class ContainerSpec(Block):
    """Fields of every spec: the image and what its container gets."""

    container: Annotated[Container | None, Meta(description="The image, in the shape of the design.")] = None
    image: Annotated[ImageText | None, Meta(description="An existing image.")] = None
    build: Annotated[Build | None, Meta(description="An image that is built, in place of an existing one.")] = None
    command: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None, Meta(description="Entry point. Default: the image's.")
    ] = None
    env: Annotated[
        Env,
        Meta(
            description="Environment variables. `${{ secrets.NAME.KEY }}` is a key of a Secret.",
            examples=[{"HUGGING_FACE_HUB_TOKEN": "${{ secrets.ai.HUGGING_FACE_HUB_TOKEN }}"}],
        ),
    ] = field(default_factory=dict)
    params: Annotated[
        Params, Meta(description="Parameters of the container, in `/content/params.json` and as `PARAM_*`.")
    ] = field(default_factory=dict)
    resources: Annotated[Resources | None, Meta(description="Resources of the container.")] = None
    model_name: Annotated[
        str | None, Meta(description="A field of the first releases, which later ones ignore; refused.")
    ] = None
    dataset_name: Annotated[
        str | None, Meta(description="A field of the first releases, which later ones ignore; refused.")
    ] = None
    status: Annotated[
        Status | None, Meta(description="Written by the operator; in the design it is here. Ignored.")
    ] = None
