"""Blocks of a Topology: nodes that are created for it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from kaigen.kinds.base import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    Block,
    Choice,
    Duration,
    ObjectName,
)
from kaigen.kinds.blocks import short_or_block


class NodeClass(Block):
    """The node class of a NodePool: an existing object of the cloud provider."""

    name: ObjectName = Field(description="Name of the node class.", examples=["default"])
    kind: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=63)] | None = Field(
        None, description="Kind of the node class. Default: AKSNodeClass or EC2NodeClass, by profile."
    )
    group: Annotated[str, Field(pattern=DNS_SUBDOMAIN, max_length=253)] | None = Field(
        None, description="API group of the node class. Default: by profile."
    )


class Karpenter(Block):
    """A Karpenter NodePool for this app."""

    node_class: NodeClass = Field(
        default_factory=lambda: NodeClass(name="default"), description="Node class of the NodePool."
    )
    zones: list[Annotated[str, Field(pattern=DNS_LABEL, max_length=63)]] = Field(
        [], description="Zones of the nodes. Default: all."
    )
    max_nodes: Annotated[int, Field(ge=1, le=10000)] | None = Field(
        None,
        description="Maximum number of nodes. Default: those of all replicas, and of one more for a rollout.",
    )
    consolidate_after: Duration | None = Field(
        None, description="Time before an idle node is removed. Default: 10m."
    )
    expire_after: Duration | None = Field(
        None, description="Age at which a node is replaced. Default: never, since models load slowly."
    )


class Provisioning(Choice):
    """Nodes that are created for the app."""

    exactly_one: ClassVar[tuple[str, ...]] = ("karpenter",)

    karpenter: Karpenter = Field(description="Nodes created by Karpenter.")


ProvisioningRef = Annotated[
    Annotated[Literal["none", "karpenter"], Tag("short")] | Annotated[Provisioning, Tag("block")],
    Discriminator(short_or_block),
]
