"""The block `builds` of `kaigen.yaml`: defaults of images that the cluster builds."""

from typing import Annotated

from msgspec import Meta

from kaigen.kinds.base import text
from kaigen.kinds.block import Block

_REGISTRY = r"^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._/-]+[a-z0-9]+)*)?$"


class Builds(Block):
    """Images that are built in the cluster."""

    registry: Annotated[
        Annotated[str, text(_REGISTRY, max_length=200)] | None,
        Meta(
            description="Registry, with or without a path, of images whose `build` has no `repository`: they are "
            "pushed to `REGISTRY/NAME`, with the name of the spec.",
            examples=["registry.example.com/acme"],
        ),
    ] = None
