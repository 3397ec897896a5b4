"""The kind `Model`: model weights, downloaded, verified and stored."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from kaigen.kinds.base import Block, Choice, Duration, Metadata
from kaigen.kinds.blocks import Placement, Security, Source, Transfer, Volume
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.entry import API_VERSION


class ModelVolume(Volume):
    """The volume with the weights at its root."""

    retain: bool = Field(
        False,
        description="Keep the volume when the spec is deleted. Default: false, since weights can be downloaded again.",
    )


class Store(Choice):
    """Where weights are stored."""

    exactly_one: ClassVar[tuple[str, ...]] = ("volume", "bucket")

    volume: ModelVolume | None = Field(None, description="A volume of the cluster.")
    bucket: Bucket | None = Field(None, description="Object storage that pods mount read-only.")


class ModelSpec(Block):
    """Weights to download and where to store them."""

    source: Source = Field(description="Source of the weights. Exactly one is required.")
    store: Store = Field(description="Where the weights are stored. Exactly one is required.")
    transfer: Transfer = Field(
        default_factory=dict, validate_default=True, description="Settings of the downloader."
    )
    placement: Placement = Field(
        default_factory=dict,
        validate_default=True,
        description="Where the downloader runs. A volume on a node's disk is created there.",
    )
    security: Security = Field(
        default_factory=dict, validate_default=True, description="Security settings of the downloader."
    )
    retries: int = Field(
        6, ge=0, le=100, description="Number of retries of a failed download, which resumes."
    )
    deadline: Duration | None = Field(None, description="Time limit of the download, including retries.")


class Model(Block):
    """Model weights, downloaded, verified and stored."""

    api_version: Literal["kaigen.dev/v1alpha1"] = Field(API_VERSION, description="Version of kaigen's kinds.")
    kind: Literal["Model"] = Field("Model", description="Kind of the document.")
    metadata: Metadata = Field(description="Name, namespace, labels and annotations of the app.")
    spec: ModelSpec = Field(description="Desired state.")
