"""Substratus' kinds and the blocks that they share: image and build, resources, references, parameters."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.core.json_types import Json
from kaigen.dialects.metadata import ForeignMetadata
from kaigen.kinds.base import ENV_NAME, NO_BLANKS, RELATIVE_PATH, AppName, LabelName, text
from kaigen.kinds.block import Block
from kaigen.kinds.blocks import Params
from kaigen.kinds.promotable import IMAGE, NAME

_ImageText = Annotated[str, IMAGE, text(NO_BLANKS, min_length=1, max_length=512)]
_GitName = Annotated[str, NAME, text(r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", max_length=200)]
_Url = Annotated[str, text(r"^https?://[^\s$@#?]+$", max_length=1024)]
_Count = Annotated[int, Meta(ge=0, le=64)]
_Status = dict[str, Json]
_Env = dict[Annotated[str, text(ENV_NAME, max_length=128)], str]

_COMMIT = Meta(
    description="Commit to build, 40 hex digits. The operator has no such field, and builds what the branch has then."
)


class Foreign(Block):
    """Fields of every resource."""

    metadata: Annotated[ForeignMetadata, Meta(description="Name, namespace, labels and annotations of the resource.")]
    status: Annotated[_Status | None, Meta(description="Written by the operator; ignored.")] = None


class DesignGit(Block):
    """A Git repository with a Dockerfile, in the shape of the design."""

    url: Annotated[_Url, Meta(description="URL of the repository.")]
    ref: Annotated[_GitName | None, Meta(description="Commit, branch or tag.", examples=["refs/branch/main"])] = None
    commit: Annotated[_GitName | None, _COMMIT] = None
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Folder of the repository with the Dockerfile. Default: its root."),
    ] = None


class Container(Block):
    """The image of a resource, in the shape of the design."""

    image: Annotated[_ImageText | None, Meta(description="An existing image.")] = None
    git: Annotated[DesignGit | None, Meta(description="A repository to build the image from.")] = None
    local: Annotated[bool, Meta(description="Build the image from the local folder; only for a Notebook.")] = False


class Git(Block):
    """A Git repository with a Dockerfile."""

    url: Annotated[_Url, Meta(description="URL of the repository.")]
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Folder of the repository with the Dockerfile. Default: its root."),
    ] = None
    tag: Annotated[_GitName | None, Meta(description="Tag; it takes precedence over `branch`.")] = None
    branch: Annotated[_GitName | None, Meta(description="Branch. Default: that of the repository.")] = None
    commit: Annotated[_GitName | None, _COMMIT] = None


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


class ImageGit(Block):
    """A Git repository with a Dockerfile, in the block `image`."""

    url: Annotated[_Url, Meta(description="URL of the repository.")]
    path: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Folder of the repository with the Dockerfile. Default: its root."),
    ] = None
    branch: Annotated[_GitName | None, Meta(description="Branch. Default: that of the repository.")] = None
    commit: Annotated[_GitName | None, _COMMIT] = None


class ImageBlock(Block):
    """The image of a resource in releases 0.4 to 0.6."""

    name: Annotated[
        _ImageText | None, Meta(description="An existing image; next to `git`, the operator writes it.")
    ] = None
    git: Annotated[ImageGit | None, Meta(description="A repository to build the image from.")] = None
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
    count: Annotated[_Count | None, Meta(description="Number of GPUs.")] = None


class Resources(Block):
    """Resources of the container."""

    cpu: Annotated[int, Meta(ge=0, le=1024, description="CPU cores.")] = 2
    memory: Annotated[int, Meta(ge=0, le=65536, description="Memory in GiB.")] = 10
    disk: Annotated[int, Meta(ge=0, le=65536, description="Scratch disk in GiB.")] = 10
    gpu: Annotated[Gpu | None, Meta(description="GPUs.")] = None
    gpu_count: Annotated[
        _Count | None, Meta(description="Number of GPUs, in the shape of the design.", examples=[4])
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
        Meta(description="Its namespace, in the shape of the design. Another one requires its files in a bucket."),
    ] = None


class Run(Block):
    """A run of the container, in the shape of the design."""

    params: Annotated[Params, Meta(description="Parameters of the container.")] = field(default_factory=dict)
    resources: Annotated[Resources | None, Meta(description="Resources of the container.")] = None


class ContainerSpec(Block):
    """Fields of every spec: the image and what its container gets."""

    container: Annotated[Container | None, Meta(description="The image, in the shape of the design.")] = None
    image: Annotated[
        _ImageText | ImageBlock | None, Meta(description="An existing image, or the block of releases 0.4 to 0.6.")
    ] = None
    build: Annotated[Build | None, Meta(description="An image that is built, in place of an existing one.")] = None
    command: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None, Meta(description="Entry point. Default: the image's.")
    ] = None
    env: Annotated[
        _Env,
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
        _Status | None, Meta(description="Written by the operator; in the design it is here. Ignored.")
    ] = None


class Quantization(Block):
    """Type of the weights in the memory of the server, in the shape of the design."""

    bits: Annotated[int, Meta(ge=1, le=64, description="Bits of a weight: 4, 8 or 16.")] = 16


class ServerSpec(ContainerSpec):
    """The container that serves a Model."""

    model: Annotated[
        AppName | Ref | None, Meta(description="Model to serve: a block, or its name in the shape of the design.")
    ] = None
    quantization: Annotated[Quantization | None, Meta(description="Quantization, in the shape of the design.")] = None


class Server(Foreign):
    """Substratus' `Server`."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["Server"], Meta(description="Kind of the document.")]
    spec: Annotated[ServerSpec, Meta(description="Desired state.")] = field(default_factory=ServerSpec)


class ModelServer(Foreign):
    """Substratus' `ModelServer`, the name of `Server` in the design."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["ModelServer"], Meta(description="Kind of the document.")]
    spec: Annotated[ServerSpec, Meta(description="Desired state.")] = field(default_factory=ServerSpec)


class NotebookSpec(ContainerSpec):
    """The container of a notebook, and what it reads."""

    model: Annotated[Ref | None, Meta(description="Model to read.")] = None
    dataset: Annotated[Ref | None, Meta(description="Dataset to read.")] = None
    source_model: Annotated[AppName | Ref | None, Meta(description="Model to read, in the shape of the design.")] = None
    base_model: Annotated[Ref | None, Meta(description="`model` in releases before 0.10.")] = None
    training_dataset: Annotated[Ref | None, Meta(description="`dataset` in releases before 0.10.")] = None
    suspend: Annotated[bool, Meta(description="Run no pod.")] = False


class Notebook(Foreign):
    """Substratus' `Notebook`."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["Notebook"], Meta(description="Kind of the document.")]
    spec: Annotated[NotebookSpec, Meta(description="Desired state.")] = field(default_factory=NotebookSpec)


class DatasetRef(Block):
    """A Dataset, or none."""

    name: Annotated[AppName | None, Meta(description="Its name.")] = None
    namespace: Annotated[
        LabelName | None, Meta(description="Its namespace. Another one requires its files in a bucket.")
    ] = None


class Trainer(Run):
    """The training of a Model, in the shape of the design."""

    base_model: Annotated[Ref | None, Meta(description="Model to start from. Without it, a new one is trained.")] = None
    source_model: Annotated[
        Ref | None, Meta(description="Another name of `baseModel`, in the manifest after a notebook.")
    ] = None
    dataset: Annotated[DatasetRef | None, Meta(description="Dataset to train on; `{}` for none.")] = None


class DatasetSpec(ContainerSpec):
    """The container that writes the files of a Dataset."""

    loader: Annotated[Run | None, Meta(description="The run of the container, in the shape of the design.")] = None
    source: Annotated[
        _Status | None, Meta(description="The repository, in releases before 0.4, which later ones ignore; refused.")
    ] = None
    filename: Annotated[
        str | None, Meta(description="Name of the file, in releases before 0.5; the container decides it. Ignored.")
    ] = None


class ModelSpec(DatasetSpec):
    """The container that writes the files of a Model, and what it reads."""

    trainer: Annotated[Trainer | None, Meta(description="The training of the Model, in the shape of the design.")] = (
        None
    )
    model: Annotated[Ref | None, Meta(description="Model to start from.")] = None
    dataset: Annotated[Ref | None, Meta(description="Dataset to train on.")] = None
    base_model: Annotated[Ref | None, Meta(description="`model` in releases before 0.10.")] = None
    training_dataset: Annotated[Ref | None, Meta(description="`dataset` in releases before 0.10.")] = None
    training: Annotated[
        _Status | None, Meta(description="The training, in releases before 0.4, which later ones ignore; refused.")
    ] = None
    size: Annotated[_Status | None, Meta(description="Parameters of the Model, in releases before 0.4. Ignored.")] = (
        None
    )
    compute: Annotated[_Status | None, Meta(description="CPU or GPU, in releases before 0.4. Ignored.")] = None


class Model(Foreign):
    """Substratus' `Model`."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["Model"], Meta(description="Kind of the document.")]
    spec: Annotated[ModelSpec, Meta(description="Desired state.")] = field(default_factory=ModelSpec)


class Dataset(Foreign):
    """Substratus' `Dataset`."""

    api_version: Annotated[Literal["substratus.ai/v1"], Meta(description="Version of Substratus' API.")]
    kind: Annotated[Literal["Dataset"], Meta(description="Kind of the document.")]
    spec: Annotated[DatasetSpec, Meta(description="Desired state.")] = field(default_factory=DatasetSpec)


Files = Model | Dataset
"""The kinds whose files other resources mount."""
