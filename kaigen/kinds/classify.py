"""The workload `classify` of a Job: labels of images, from a network of torchvision's."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.kinds.base import RELATIVE_PATH, SHA256, MountPath, text
from kaigen.kinds.block import Block
from kaigen.kinds.blocks import Image


class ClassifyWeights(Block):
    """The weights: a safetensors file, or one of PyTorch, with torchvision's names of tensors."""

    file: Annotated[
        Annotated[str, text(RELATIVE_PATH, max_length=1024)] | None,
        Meta(description="Path of the file in the folder of `model`. Default: `model.safetensors`."),
    ] = None
    path: Annotated[
        MountPath | None,
        Meta(description="Absolute path of the file, in place of `model`, such as one in `output.volume`."),
    ] = None
    version: Annotated[
        Literal["IMAGENET1K_V1", "IMAGENET1K_V2"] | None,
        Meta(
            description="torchvision's name of the weights, which decides how images are resized. Default: "
            "`IMAGENET1K_V2` for resnet50, `IMAGENET1K_V1` for mobilenet_v3_small."
        ),
    ] = None
    sha256: Annotated[
        Annotated[str, text(SHA256)] | None,
        Meta(description="SHA-256 checksum that the file must have, 64 hex digits."),
    ] = None


class Classify(Block):
    """What the workload `classify` reads and writes."""

    image: Annotated[
        Image | None, Meta(description="Image with `kaigen-classify`. Default: `images.classify` of kaigen.yaml.")
    ] = None
    model: Annotated[Literal["resnet50", "mobilenet_v3_small"], Meta(description="The network.")] = "resnet50"
    weights: Annotated[ClassifyWeights, Meta(description="The file with its weights.")] = field(
        default_factory=ClassifyWeights
    )
    input: Annotated[
        MountPath | None,
        Meta(
            description="An image, a folder of images, or a list of images: a `.txt` file with a path in each line. "
            "Default: the folder of `inputs`.",
            examples=["/output/input.jpg"],
        ),
    ] = None
    output: Annotated[
        MountPath | None,
        Meta(
            description="File for the result, in `output.volume`: one JSON object, or a line for each image if the "
            "name ends in `.jsonl`. With `shards`, the number of the shard is added to the name. Default: "
            "`output.json` in that volume."
        ),
    ] = None
    top_k: Annotated[int, Meta(ge=1, le=1000, description="Number of labels for each image.")] = 5
    batch_size: Annotated[int, Meta(ge=1, le=4096, description="Images in one pass of the network.")] = 32
    precision: Annotated[
        Literal["auto", "float32", "float16", "bfloat16"],
        Meta(description="Number type of the pass. `auto`: float32 on a CPU, float16 on a GPU."),
    ] = "auto"
