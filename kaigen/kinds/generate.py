"""The workload `generate` of a Job: answers of vLLM to the lines of files."""

from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.core.json_types import Json
from kaigen.kinds.base import FLAG, MountPath, text
from kaigen.kinds.block import Block
from kaigen.kinds.blocks import Image

Template = Annotated[str, text(r"^([^{}]|\{\{|\}\}|\{[A-Za-z_][A-Za-z0-9_.-]*\})+$", max_length=100_000)]


class Generate(Block):
    """What the workload `generate` reads, asks and writes."""

    image: Annotated[
        Image | None, Meta(description="Image with vLLM. Default: that of `images` in kaigen.yaml for the GPUs.")
    ] = None
    engine_version: Annotated[
        Annotated[str, text(r"^[0-9]+\.[0-9]+(\.[0-9]+)?$", max_length=20)] | None,
        Meta(description="Version of vLLM in the image. Default: the tag of the image.", examples=["0.33.0"]),
    ] = None
    task: Annotated[
        Literal["chat", "complete", "embed", "classify"],
        Meta(
            description="What vLLM does with each line: answer a conversation, continue a text, return a vector, or "
            "return the label of a text. With `format: openai`, each line has its `url`; `embed` and `classify` make "
            "vLLM able to do these."
        ),
    ] = "chat"
    format: Annotated[
        Literal["rows", "openai"],
        Meta(
            description="`rows`: each line is an object with fields. `openai`: each line is a request in the format of "
            "OpenAI's batch files, and so are the results."
        ),
    ] = "rows"
    results: Annotated[
        Literal["jsonl", "parquet"],
        Meta(description="File of the results: `results.jsonl`, or `results.parquet`."),
    ] = "jsonl"
    input: Annotated[
        MountPath | None,
        Meta(
            description="A file of JSON lines (`.jsonl`, `.ndjson`) or Parquet (`.parquet`), or a folder of such "
            "files. Default: the folder of `inputs`.",
            examples=["/inputs/reviews/test.jsonl"],
        ),
    ] = None
    parquet: Annotated[
        bool | None,
        Meta(
            description="Whether the input may have Parquet files: then the pod has pyarrow, from the image `pyarrow`. "
            "Default: true if `input` ends in `.parquet` or `results` is `parquet`. Set it to false if the image of "
            "vLLM has pyarrow."
        ),
    ] = None
    prompt: Annotated[
        Template | None,
        Meta(
            description="Text of the request, with fields of the line in braces; `{{` is a brace. Default: the field "
            "`messages` of a line with `chat`, else `prompt` or `text`.",
            examples=["Summarize in one sentence: {text}"],
        ),
    ] = None
    system: Annotated[
        Template | None, Meta(description="System message of each conversation, with fields as in `prompt`.")
    ] = None
    parameters: Annotated[
        dict[str, Json],
        Meta(
            description="Further fields of each request, as in the API of OpenAI.",
            examples=[{"max_tokens": 256, "temperature": 0}],
        ),
    ] = field(default_factory=dict)
    context_length: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum context length of a request, in tokens. Default: that of the model."),
    ] = None
    engine_args: Annotated[
        dict[Annotated[str, text(FLAG, max_length=120)], Json],
        Meta(
            description="Further flags of vLLM by name, as in a Topology.",
            examples=[{"max-num-batched-tokens": 8192}],
        ),
    ] = field(default_factory=dict)
    concurrency: Annotated[
        int, Meta(ge=1, le=4096, description="Number of requests that each shard sends at a time.")
    ] = 64
    checkpoint_lines: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Number of lines whose answers are stored together. A pod that starts again goes on after "
            "them.",
        ),
    ] = 500
    max_failures: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Number of failed lines after which a shard fails. Default: no limit; a run whose lines all "
            "failed fails."
        ),
    ] = None
