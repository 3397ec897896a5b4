"""The block `cluster` of kaigen.yaml: the versions of what runs in the clusters."""

from typing import Annotated

from msgspec import Meta

from kaigen.kinds.base import text
from kaigen.kinds.block import Block

ControllerVersion = Annotated[str, text(r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]


class ClusterVersions(Block):
    """Versions of controllers."""

    kueue: Annotated[
        ControllerVersion | None,
        Meta(
            description="Version of Kueue, which decides what `kaigen diff` says of changes of objects in a queue. "
            "Default: the newest that kaigen knows.",
            examples=["0.19.2"],
        ),
    ] = None
