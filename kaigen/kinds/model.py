"""The kind `Model`: model weights, downloaded, verified and stored."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.kinds.base import Duration, Metadata
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.blocks import Env, Placement, Security, Source, Transfer, Volume
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.facts import Facts
from kaigen.kinds.pod import PodFields


class ModelVolume(Volume):
    """The volume with the weights, in a folder for each revision."""

    retain: Annotated[
        bool,
        Meta(
            description="Keep the volume when the spec is deleted. Default: false, since weights can be "
            "downloaded again."
        ),
    ] = False


class Store(Choice):
    """Where weights are stored."""

    exactly_one: ClassVar[tuple[str, ...]] = ("volume", "bucket")

    volume: Annotated[ModelVolume | None, Meta(description="A volume of the cluster.")] = None
    bucket: Annotated[Bucket | None, Meta(description="Object storage that pods mount read-only.")] = None
    keep_revisions: Annotated[
        int,
        Meta(
            ge=0,
            le=20,
            description="Number of earlier revisions that stay stored next to the current one, for a rollback without "
            "a download. Older ones are removed before the next download, unless a pod reads them.",
        ),
    ] = 1


class ModelSpec(PodFields):
    """Weights to download and where to store them."""

    source: Annotated[Source, Meta(description="Source of the weights. Exactly one is required.")]
    store: Annotated[Store, Meta(description="Where the weights are stored. Exactly one is required.")]
    facts: Annotated[
        Facts | None,
        Meta(
            description="Shape and size of the model, from which kaigen plans the GPUs of a Topology that serves it. "
            "Default: those of the catalogue, if it has the repository."
        ),
    ] = None
    transfer: Annotated[Transfer, Meta(description="Settings of the downloader.")] = field(
        default_factory=Transfer
    )
    placement: Annotated[
        Placement, Meta(description="Where the downloader runs. A volume on a node's disk is created there.")
    ] = field(default_factory=Placement)
    security: Annotated[Security, Meta(description="Security settings of the downloader.")] = field(
        default_factory=Security
    )
    env: Annotated[
        Env, Meta(description="Environment variables of the downloader: a value, or its source.")
    ] = field(default_factory=dict)
    retries: Annotated[
        int, Meta(ge=0, le=100, description="Number of retries of a failed download, which resumes.")
    ] = 6
    deadline: Annotated[
        Duration | None, Meta(description="Time limit of the download, including retries.")
    ] = None


class Model(Block):
    """Model weights, downloaded, verified and stored."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")] = (
        API_VERSION
    )
    kind: Annotated[Literal["Model"], Meta(description="Kind of the document.")] = "Model"
    metadata: Annotated[Metadata, Meta(description="Name, namespace, labels and annotations of the app.")]
    spec: Annotated[ModelSpec, Meta(description="Desired state.")]
