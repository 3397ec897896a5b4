"""`tune` of a Job: fine-tunes a language model with kaigen's own program."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from kaigen.kinds.base import MountPath
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.blocks import Image

Column = Annotated[str, Meta(min_length=1, max_length=256)]


class Columns(Choice):
    """Names of the columns of the samples."""

    exactly_one: ClassVar[tuple[str, ...]] = ("text", "completion", "messages")

    text: Annotated[Column | None, Meta(description="A text that is trained on as a whole.")] = None
    prompt: Annotated[Column | None, Meta(description="What comes before `completion`.", examples=["instruction"])] = (
        None
    )
    completion: Annotated[
        Column | None, Meta(description="What is trained on after `prompt`.", examples=["response"])
    ] = None
    messages: Annotated[
        Column | None, Meta(description="A conversation, of which the messages of the assistant are trained on.")
    ] = None


class Tune(Block):
    """What is trained, on which samples, and how."""

    image: Annotated[
        Image | None, Meta(description="Image with `kaigen-train`. Default: `images.train` of kaigen.yaml.")
    ] = None
    method: Annotated[
        Literal["lora", "qlora", "full"],
        Meta(
            description="What is trained. `lora`: an adapter. `qlora`: an adapter, over weights of 4 bits; requires an "
            "NVIDIA GPU. `full`: all weights."
        ),
    ] = "lora"
    dataset: Annotated[
        MountPath | None,
        Meta(
            description="A folder with files of JSON lines (`.jsonl`), or in `.parquet`, `.arrow`, `.csv` or `.json`; "
            "or one file. A row has `text`, `messages`, or `prompt` and `completion`. Default: the folder of `inputs`.",
            examples=["/inputs/alpaca"],
        ),
    ] = None
    columns: Annotated[
        Columns | None,
        Meta(
            description="Names of the columns of samples. Default: `text`, `messages`, or `prompt` and `completion`.",
            examples=[{"prompt": "instruction", "completion": "response"}],
        ),
    ] = None
    output: Annotated[
        MountPath | None,
        Meta(
            description="A folder of one of `volumes` for the result and the checkpoints, in place of `output` of the "
            "Job. The files of the adapter or the model are in that folder itself.",
            examples=["/results"],
        ),
    ] = None
    rank: Annotated[
        Annotated[int, Meta(ge=1, le=1024)] | None, Meta(description="Rank of the adapter. Default: 16.")
    ] = None
    alpha: Annotated[
        Annotated[float, Meta(ge=0.001, le=4096)] | None,
        Meta(description="Scale of the adapter, which is divided by its rank. Default: 32."),
    ] = None
    dropout: Annotated[
        Annotated[float, Meta(ge=0, le=0.9)] | None,
        Meta(description="Part of the inputs of the adapter that a step ignores. Default: 0."),
    ] = None
    target_modules: Annotated[
        Annotated[list[Annotated[str, Meta(min_length=1, max_length=256)]], Meta(min_length=1, max_length=100)] | None,
        Meta(
            description="Names of the layers that get an adapter. Default: all linear layers except the output.",
            examples=[["q_proj", "v_proj"]],
        ),
    ] = None
    merge: Annotated[
        bool, Meta(description="Store a whole model in place of the adapter: the weights with the adapter added.")
    ] = False
    learning_rate: Annotated[
        Annotated[float, Meta(ge=1e-9, le=1)] | None,
        Meta(description="Largest step of AdamW. Default: 2e-4, with `full` 1e-5.", examples=[1e-4]),
    ] = None
    schedule: Annotated[
        Literal["cosine", "linear", "constant"], Meta(description="How the learning rate falls after the warm-up.")
    ] = "cosine"
    warmup: Annotated[float, Meta(ge=0, le=0.5, description="Part of the steps in which the learning rate grows.")] = (
        0.03
    )
    weight_decay: Annotated[float, Meta(ge=0, le=1, description="Weight decay of AdamW.")] = 0.0
    epochs: Annotated[float, Meta(ge=0.01, le=1000, description="Passes over the samples.")] = 1.0
    batch_size: Annotated[int, Meta(ge=1, le=4096, description="Samples in one pass of each GPU.")] = 4
    gradient_accumulation: Annotated[int, Meta(ge=1, le=4096, description="Passes in one step.")] = 4
    max_length: Annotated[
        int, Meta(ge=8, le=1 << 20, description="Tokens of a sample. Further tokens are cut off.")
    ] = 1024
    seed: Annotated[
        int, Meta(ge=0, le=(1 << 32) - 1, description="Seed of the order of the samples, new weights and dropout.")
    ] = 42
    evaluation: Annotated[
        float,
        Meta(
            ge=0,
            le=0.5,
            description="Part of the samples that is evaluated and not trained on, if no file begins with `eval`, "
            "`valid` or `test`.",
        ),
    ] = 0.05
    checkpoint_steps: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Steps between checkpoints, from which a killed run goes on.")
    ] = 100
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        Meta(
            description="Number type of the computation. `auto`: bfloat16 on a GPU, or float16 where it has none; "
            "float32 on a CPU."
        ),
    ] = "auto"
    gradient_checkpointing: Annotated[
        bool, Meta(description="Compute activations twice in place of storing them, which takes less GPU memory.")
    ] = True
