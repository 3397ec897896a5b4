"""The block `canary` of a Topology: its next version, as a second pool of pods."""

from typing import Annotated

from msgspec import Meta

from kaigen.kinds.base import text
from kaigen.kinds.block import Block
from kaigen.kinds.blocks import Image, Params
from kaigen.kinds.exposure import Weight
from kaigen.kinds.pod import Variables
from kaigen.kinds.serving import Adapter, EngineArgs, PoolName, ServedModelRef

OWN = frozenset({"weight", "pool", "replicas"})
"""Fields of a canary that are not of its version."""


class Canary(Block):
    """The next version of a Topology. A field that it has replaces that of the Topology, as a whole."""

    weight: Annotated[
        Weight, Meta(description="Percentage of requests that go to the new pods; 0 while they only start.")
    ] = 0
    pool: Annotated[
        PoolName | None,
        Meta(
            description="What follows the Topology's name in that of the pool. Default: a hash of the version.",
            examples=["v2"],
        ),
    ] = None
    replicas: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="Number of its replicas. Default: as many as the Topology has."),
    ] = None
    model: Annotated[ServedModelRef | None, Meta(description="Source of the weights.")] = None
    preset: Annotated[
        Annotated[str, text(r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", min_length=1, max_length=200)] | None,
        Meta(description="Catalogue name of the model.", examples=["phi-4"]),
    ] = None
    image: Annotated[Image | None, Meta(description="Image of the engine.")] = None
    engine_version: Annotated[
        Annotated[str, text(r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")] | None,
        Meta(description="Version of the engine in `image`, if the tag does not contain it.", examples=["0.25.1"]),
    ] = None
    command: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None, Meta(description="Entry point of a `container`.")
    ] = None
    args: Annotated[list[str] | None, Meta(description="Arguments of a `container`.")] = None
    engine_args: Annotated[EngineArgs | None, Meta(description="Further flags of the engine.")] = None
    quantization: Annotated[
        Annotated[str, text(r"^[a-z0-9][a-z0-9_-]*$", max_length=60)] | None, Meta(description="Quantization.")
    ] = None
    context_length: Annotated[
        Annotated[int, Meta(ge=1, le=100_000_000)] | None, Meta(description="Longest context of a request, in tokens.")
    ] = None
    concurrency: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="Maximum number of concurrent requests of one engine."),
    ] = None
    adapters: Annotated[
        Annotated[list[Adapter], Meta(max_length=100)] | None, Meta(description="LoRA adapters of the model.")
    ] = None
    env: Annotated[Variables | None, Meta(description="Environment variables.")] = None
    params: Annotated[Params | None, Meta(description="Parameters of the engine.")] = None
