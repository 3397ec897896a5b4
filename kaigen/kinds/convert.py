"""The block `convert` of a Model: another format of the weights, written after the download."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.kinds.base import Quantity
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.blocks import Image
from kaigen.kinds.bucket import Bucket
from kaigen.kinds.store import ModelVolume

WeightType = Literal["q40", "f32", "q80", "f16"]
"""Types of numbers that distributed-llama's format has; it can load only the first two."""


class ConvertedStore(Choice):
    """Where converted weights are stored, apart from the downloaded ones."""

    exactly_one: ClassVar[tuple[str, ...]] = ("volume", "bucket")

    volume: Annotated[ModelVolume | None, Meta(description="A volume of the cluster.")] = None
    bucket: Annotated[Bucket | None, Meta(description="Object storage that pods mount read-only.")] = None


class Converter(Block):
    """Settings of the container that converts."""

    image: Annotated[Image | None, Meta(description="Image of the converter. Default: kaigen's own.")] = None
    memory: Annotated[
        Quantity | None, Meta(description="Memory of the converter. Default: computed from the shape of the model.")
    ] = None
    cpu: Annotated[Quantity | None, Meta(description="CPU of the converter, which uses two at most. Default: 1.")] = (
        None
    )


class DistributedLlama(Block):
    """Files for distributed-llama: `model.m` and `tokenizer.t`."""

    weights: Annotated[
        WeightType,
        Meta(
            description="Type of the numbers: `q40` (4 bits, 0.5625 bytes each) or `f32`. The runtime cannot load "
            "`q80` and `f16`, which its own converter can write."
        ),
    ] = "q40"
    store: Annotated[
        ConvertedStore | None,
        Meta(
            description="Where the converted files are stored, if not next to the downloaded ones. Default: in "
            "`store`, next to the downloaded files."
        ),
    ] = None
    converter: Annotated[Converter, Meta(description="Settings of the container that converts.")] = field(
        default_factory=Converter
    )


class Convert(Choice):
    """The format to convert weights to."""

    exactly_one: ClassVar[tuple[str, ...]] = ("distributedLlama",)

    distributed_llama: Annotated[
        DistributedLlama | None,
        Meta(description="Format of distributed-llama. Weights are read from safetensors files."),
    ] = None
