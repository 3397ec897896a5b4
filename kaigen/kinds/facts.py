"""The block `facts`: what kaigen must know of a model that its catalogue does not have."""

from typing import Annotated

from msgspec import Meta

from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import Quantity
from kaigen.kinds.block import Block


class Facts(Block):
    """Shape and size of a model, from which kaigen plans its GPUs."""

    config: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)] | JsonObject,
        Meta(
            description="The model's `config.json`: a path relative to the spec, or its content.",
            examples=["qwen/config.json"],
        ),
    ]
    weights: Annotated[
        Quantity,
        Meta(description="Size of the weights that the engine loads, in bytes with a unit.", examples=["14.2Gi"]),
    ]
