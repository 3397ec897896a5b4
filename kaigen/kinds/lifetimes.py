"""How long things of finished runs are kept."""

from typing import Annotated

from msgspec import Meta

from kaigen.kinds.base import LIFETIME, text
from kaigen.kinds.block import Block

Ttl = Annotated[int, Meta(ge=0, le=2147483647)] | Annotated[str, text(LIFETIME, max_length=20)]
"""A time after the end of a run: a duration, seconds, or `never`."""


class PodTtl(Block):
    """How long pods of a finished run are kept. Their Job stays, so that Argo CD and Flux do not run it again."""

    pods: Annotated[
        Ttl,
        Meta(
            description="Time after a completed run until its pods are deleted: a duration, seconds, or `never`.",
            examples=["1h", 0],
        ),
    ] = "never"
    failed_pods: Annotated[
        Ttl | None, Meta(description="The same for a failed run. Default: `pods`.", examples=["7d", "never"])
    ] = None


class VolumeTtl(Block):
    """How long a volume is kept after the run that wrote to it."""

    completed: Annotated[
        Ttl,
        Meta(
            description="Time after a completed run until the volume is deleted: a duration, seconds, or `never`.",
            examples=["1h"],
        ),
    ] = "never"
    failed: Annotated[
        Ttl | None, Meta(description="The same after a failed run. Default: `completed`.", examples=["7d", "never"])
    ] = None
