"""The kind `Model`: weights from somewhere, at rest somewhere, proven complete."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from kaigen.kinds.base import Block, Choice, Duration, Metadata
from kaigen.kinds.blocks import Placement, Security, Source, Transfer, Volume
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.entry import API_VERSION


class ModelVolume(Volume):
    """The volume that holds the weights, at its root."""

    retain: bool = Field(
        False,
        description="Keep the volume when the spec is deleted. Weights can be fetched again, so by default not.",
    )


class Store(Choice):
    """Where weights rest."""

    exactly_one: ClassVar[tuple[str, ...]] = ("volume", "bucket")

    volume: ModelVolume | None = Field(None, description="A volume of the cluster.")
    bucket: Bucket | None = Field(None, description="Object storage, which pods mount read-only.")


class ModelSpec(Block):
    """What to fetch and where to keep it."""

    source: Source = Field(description="Where the weights come from: exactly one source.")
    store: Store = Field(description="Where they rest: exactly one store.")
    transfer: Transfer = Field(default_factory=dict, validate_default=True, description="How they are moved.")
    placement: Placement = Field(
        default_factory=dict,
        validate_default=True,
        description="Where the downloader runs; a volume of one node's disk is bound there.",
    )
    security: Security = Field(
        default_factory=dict, validate_default=True, description="How far the downloader is locked in."
    )
    retries: int = Field(
        6, ge=0, le=100, description="How often a failed download is tried again; it resumes."
    )
    deadline: Duration | None = Field(None, description="Longest time a download may take, retries included.")


class Model(Block):
    """Weights from somewhere, at rest somewhere, proven complete."""

    api_version: Literal["kaigen.dev/v1alpha1"] = Field(API_VERSION, description="Version of kaigen's kinds.")
    kind: Literal["Model"] = Field("Model", description="The kind.")
    metadata: Metadata = Field(description="Who the app is.")
    spec: ModelSpec = Field(description="What is wanted.")
