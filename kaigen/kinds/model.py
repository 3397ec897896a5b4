"""The kinds `Model` and `Dataset`: files, downloaded, verified and stored."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.kinds.base import Duration, Metadata
from kaigen.kinds.block import Block, later
from kaigen.kinds.blocks import Env, FileSource, HubDataset, Placement, PodUser, Source, Transfer
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.pod import PodFields
from kaigen.kinds.serving import ExistingVolume, JobOutput, WeightsVolume
from kaigen.kinds.sources import Globs
from kaigen.kinds.store import NoStore, Store

if TYPE_CHECKING:
    from kaigen.kinds.convert import Convert
    from kaigen.kinds.loader import Loader
    from kaigen.kinds.operation import DownloadMonitoring
    from kaigen.kinds.serving import Facts
else:
    Convert = later("kaigen.kinds.convert:Convert")
    Facts = later("kaigen.kinds.serving:Facts")
    Loader = later("kaigen.kinds.loader:Loader")
    DownloadMonitoring = later("kaigen.kinds.operation:DownloadMonitoring")

_FROM_JOB = "Files that a Job writes to its `output`, stored when it has completed."
_FROM_LOADER = "Files that a container writes, stored when it has succeeded."


class JobFiles(JobOutput):
    """Files that a Job writes to its output."""

    include: Annotated[
        Globs, Meta(description="Globs of files to store. Default: all files.", examples=[["*.safetensors"]])
    ] = field(default_factory=list)
    exclude: Annotated[Globs, Meta(description="Globs of files to skip.", examples=[["checkpoint-*/"]])] = field(
        default_factory=list
    )


class FilesOfLoader(JobFiles):
    """Files of the Job of `source.loader`."""


class FilesOfRun(JobFiles):
    """Files of a Job whose run is known.

    Attributes:
        run: name of the run's object, which ends in a hash of what it runs.
    """

    run: str


class Empty(Block):
    """No files: the app makes a place for them, which somebody fills."""


_EMPTY = Annotated[
    Empty | None,
    Meta(
        description="No files: `store` is made, and readers mount it as it is. Somebody fills it, and nothing waits "
        "for that."
    ),
]


class ModelSource(Source):
    """Source of model weights, or the volume that has them already."""

    exactly_one: ClassVar[tuple[str, ...]] = (*Source.exactly_one, "job", "loader", "volume", "empty")

    job: Annotated[JobFiles | None, Meta(description=_FROM_JOB)] = None
    loader: Annotated[Loader | None, Meta(description=_FROM_LOADER)] = None

    volume: Annotated[
        WeightsVolume | None,
        Meta(description="A folder of an existing volume with the weights. Nothing is downloaded."),
    ] = None
    empty: _EMPTY = None


class DatasetSource(FileSource):
    """Source of the files of a dataset, or the volume that has them already."""

    exactly_one: ClassVar[tuple[str, ...]] = (*FileSource.exactly_one, "job", "loader", "volume", "empty")

    job: Annotated[JobFiles | None, Meta(description=_FROM_JOB)] = None
    loader: Annotated[Loader | None, Meta(description=_FROM_LOADER)] = None
    hugging_face: Annotated[HubDataset | None, Meta(description="A dataset on the Hugging Face Hub.")] = None
    volume: Annotated[
        ExistingVolume | None, Meta(description="A folder of an existing volume with the files. Nothing is downloaded.")
    ] = None
    empty: _EMPTY = None


class DownloadSpec(PodFields):
    """Files to download and where to store them."""

    source: Annotated[ModelSource | DatasetSource, Meta(description="Source of the files. Exactly one is required.")]
    store: Annotated[
        Store,
        Meta(description="Where downloaded files are stored: exactly one is required, and none with `source.volume`."),
    ] = field(default_factory=NoStore)
    transfer: Annotated[Transfer, Meta(description="Settings of the downloader.")] = field(default_factory=Transfer)
    placement: Annotated[
        Placement, Meta(description="Where the downloader runs. A volume on a node's disk is created there.")
    ] = field(default_factory=Placement)
    security: Annotated[PodUser, Meta(description="Security settings of the downloader.")] = field(
        default_factory=PodUser
    )
    env: Annotated[Env, Meta(description="Environment variables of the downloader: a value, or its source.")] = field(
        default_factory=dict
    )
    monitoring: Annotated[
        DownloadMonitoring | None,
        Meta(description="A PodMonitor for the progress of the downloader; `{}` for the defaults."),
    ] = None
    retries: Annotated[
        int, Meta(ge=0, le=100, description="Number of retries of a failed download, which resumes.")
    ] = 6
    deadline: Annotated[Duration | None, Meta(description="Time limit of the download, including retries.")] = None


class ModelSpec(DownloadSpec):
    """Weights to download and where to store them."""

    source: Annotated[ModelSource, Meta(description="Source of the weights. Exactly one is required.")]
    convert: Annotated[
        Convert | None,
        Meta(
            description="Another format, to which the downloaded weights are converted. Apps that name this Model then "
            "mount the converted files."
        ),
    ] = None
    facts: Annotated[
        Facts | None,
        Meta(
            description="Shape and size of the model, from which kaigen plans the GPUs of a Topology that serves it. "
            "Default: those of the catalogue, if it has the repository."
        ),
    ] = None


class DatasetSpec(DownloadSpec):
    """Files of a dataset to download and where to store them."""

    source: Annotated[DatasetSource, Meta(description="Source of the files. Exactly one is required.")]


class Model(Block):
    """Model weights, downloaded, verified and stored."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")] = API_VERSION
    kind: Annotated[Literal["Model"], Meta(description="Kind of the document.")] = "Model"
    metadata: Annotated[Metadata, Meta(description="Name, namespace, labels and annotations of the app.")]
    spec: Annotated[ModelSpec, Meta(description="Desired state.")]


class Dataset(Block):
    """Files of a dataset, downloaded, verified and stored."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")] = API_VERSION
    kind: Annotated[Literal["Dataset"], Meta(description="Kind of the document.")] = "Dataset"
    metadata: Annotated[Metadata, Meta(description="Name, namespace, labels and annotations of the app.")]
    spec: Annotated[DatasetSpec, Meta(description="Desired state.")]


Downloaded = Model | Dataset
"""The kinds whose files other apps mount."""
