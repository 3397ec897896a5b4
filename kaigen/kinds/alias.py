"""The kind `Alias`: another name of a Topology, for clients that use its old one."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.kinds.base import AppName, Metadata
from kaigen.kinds.block import Block
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.exposure import AliasService, Route, Weight


class AliasCanary(Block):
    """A second Topology that answers a share of the requests."""

    topology: Annotated[
        AppName, Meta(description="Name of the Topology in the same namespace.", examples=["assistant-v2"])
    ]
    weight: Annotated[
        Weight, Meta(description="Percentage of requests that it answers; with 100, also those of the Service.")
    ] = 0


class AliasSpec(Block):
    """The Topology that answers, and how requests reach it by the name of the alias."""

    topology: Annotated[
        AppName,
        Meta(description="Name of the Topology in the same namespace whose pods answer.", examples=["assistant"]),
    ]
    service: Annotated[
        AliasService, Meta(description="The Service with the name of the alias: the block of the old Topology.")
    ] = field(default_factory=AliasService)
    route: Annotated[
        Route | None,
        Meta(
            description="How requests from outside the cluster reach the alias: the block of the old Topology. "
            "Default: they do not."
        ),
    ] = None
    canary: Annotated[
        AliasCanary | None, Meta(description="A second Topology that answers a share of the requests.")
    ] = None


class Alias(Block):
    """Another name of a Topology: a Service, and a route, that lead to its pods."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")] = API_VERSION
    kind: Annotated[Literal["Alias"], Meta(description="Kind of the document.")] = "Alias"
    metadata: Annotated[Metadata, Meta(description="Identity of the app.")]
    spec: Annotated[AliasSpec, Meta(description="What the alias leads to.")]
