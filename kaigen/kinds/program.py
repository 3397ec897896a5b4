"""What a container runs: its image, entry point and variables."""

from typing import Annotated

from msgspec import Meta

from kaigen.kinds.blocks import Env, Image
from kaigen.kinds.build import Build

GivenImage = Annotated[
    Image | None, Meta(description="Image of the container: a reference, or a block with pull settings.")
]
BuiltImage = Annotated[
    Build | None, Meta(description="An image that is built from a Git repository, in place of an existing one.")
]
Command = Annotated[
    Annotated[list[str], Meta(min_length=1)] | None, Meta(description="Entry point. Default: the image's.")
]
Args = Annotated[list[str] | None, Meta(description="Arguments of the entry point. Default: the image's.")]
Variables = Annotated[Env, Meta(description="Environment variables: a value, or its source.")]
