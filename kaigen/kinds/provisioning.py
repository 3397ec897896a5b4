"""Blocks of a Topology: nodes that are created for it."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.kinds.base import DNS_LABEL, DNS_SUBDOMAIN, Duration, ObjectName, text
from kaigen.kinds.block import Block


class NodeClass(Block):
    """The node class of a NodePool: an existing object of the cloud provider."""

    name: Annotated[ObjectName, Meta(description="Name of the node class.", examples=["default"])]
    kind: Annotated[
        Annotated[str, text(r"^[A-Z][A-Za-z0-9]*$", max_length=63)] | None,
        Meta(description="Kind of the node class. Default: AKSNodeClass or EC2NodeClass, by profile."),
    ] = None
    group: Annotated[
        Annotated[str, text(DNS_SUBDOMAIN, max_length=253)] | None,
        Meta(description="API group of the node class. Default: by profile."),
    ] = None


class Karpenter(Block):
    """A Karpenter NodePool for this app."""

    node_class: Annotated[NodeClass, Meta(description="Node class of the NodePool.")] = field(
        default_factory=lambda: NodeClass(name="default")
    )
    zones: Annotated[
        list[Annotated[str, text(DNS_LABEL, max_length=63)]], Meta(description="Zones of the nodes. Default: all.")
    ] = field(default_factory=list)
    max_nodes: Annotated[
        Annotated[int, Meta(ge=1, le=10000)] | None,
        Meta(description="Maximum number of nodes. Default: those of all replicas, and of one more for a rollout."),
    ] = None
    consolidate_after: Annotated[
        Duration | None, Meta(description="Time before an idle node is removed. Default: 10m.")
    ] = None
    expire_after: Annotated[
        Duration | None, Meta(description="Age at which a node is replaced. Default: never, since models load slowly.")
    ] = None


class Provisioning(Block):
    """Nodes that are created for the app."""

    karpenter: Annotated[Karpenter, Meta(description="Nodes created by Karpenter.")]


ProvisioningRef = Literal["none", "karpenter"] | Provisioning
