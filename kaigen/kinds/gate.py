"""The workloads `benchmark` and `evaluate` of a Job: what is asked of a Topology, and what the answers must show."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import Json
from kaigen.kinds.base import AppName, Duration, MountPath, text
from kaigen.kinds.block import Block
from kaigen.kinds.blocks import Image

GATES = ("benchmark", "evaluate")
"""Workloads that judge a Topology."""

Latency = Annotated[str, text(r"^[0-9]+(\.[0-9]+)?(ms|s)$", max_length=20)]
Share = Annotated[float, Meta(ge=0, le=1)]
TaskName = Annotated[str, text(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=200)]


class Target(Block):
    """The Topology that is judged."""

    name: Annotated[AppName, Meta(description="A Topology in the same namespace.", examples=["assistant"])]
    version: Annotated[
        Literal["serving", "canary"],
        Meta(description="Which of its versions: the one that serves, or its `canary` while it has one."),
    ] = "serving"
    wait: Annotated[
        Duration, Meta(description="Longest time to wait until its pods are rolled out and it answers.")
    ] = "30m"


class LatencyLimits(Block):
    """Longest times of a request's phase: `120ms`, `1.5s`."""

    mean: Annotated[Latency | None, Meta(description="The mean.")] = None
    p50: Annotated[Latency | None, Meta(description="The median.")] = None
    p90: Annotated[Latency | None, Meta(description="The 90th percentile.")] = None
    p95: Annotated[Latency | None, Meta(description="The 95th percentile.", examples=["500ms"])] = None
    p99: Annotated[Latency | None, Meta(description="The 99th percentile.")] = None


class AtLeast(Block):
    """A smallest value."""

    min: Annotated[Annotated[float, Meta(ge=0)], Meta(description="The smallest value.")]


class ShareAtLeast(Block):
    """A smallest share."""

    min: Annotated[Share, Meta(description="The smallest share, from 0 to 1.", examples=[0.8])]


class ShareAtMost(Block):
    """A largest share."""

    max: Annotated[Share, Meta(description="The largest share, from 0 to 1.", examples=[0.01])]


class Require(Block):
    """What a run must measure to pass. Without an entry, the run passes when it ends."""

    latencies: ClassVar[tuple[str, ...]] = ("ttft", "tpot", "itl", "e2el")

    ttft: Annotated[LatencyLimits | None, Meta(description="Time to first token.")] = None
    tpot: Annotated[LatencyLimits | None, Meta(description="Time per output token after the first one.")] = None
    itl: Annotated[LatencyLimits | None, Meta(description="Inter-token latency.")] = None
    e2el: Annotated[LatencyLimits | None, Meta(description="End-to-end latency of a request.")] = None
    throughput: Annotated[AtLeast | None, Meta(description="Output tokens per second, of all requests.")] = None
    request_throughput: Annotated[AtLeast | None, Meta(description="Requests per second.")] = None
    errors: Annotated[ShareAtMost | None, Meta(description="Share of failed requests. Default: none may fail.")] = None
    accuracy: Annotated[
        ShareAtLeast | None, Meta(description="Share of right answers, in each task of `evaluate`.")
    ] = None


Api = Annotated[
    Literal["chat", "completions"],
    Meta(description="What is asked: `/v1/chat/completions` or `/v1/completions`."),
]


class Benchmark(Block):
    """The load that the workload `benchmark` makes, with `vllm bench serve`."""

    image: Annotated[Image | None, Meta(description="Image with vLLM. Default: `images.vllmCpu` of kaigen.yaml.")] = (
        None
    )
    api: Api = "chat"
    requests: Annotated[int, Meta(ge=1, le=1_000_000, description="Number of requests.")] = 200
    concurrency: Annotated[int, Meta(ge=1, le=4096, description="Largest number of requests at the same time.")] = 8
    rate: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="Requests per second, at random times with this mean. Default: the next request follows an "
            "answer.",
            examples=[4],
        ),
    ] = None
    warmups: Annotated[int, Meta(ge=0, le=10_000, description="Number of requests before the measurement.")] = 1
    prompt_words: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Number of words of each prompt, which are random.")
    ] = 200
    output_tokens: Annotated[
        int, Meta(ge=1, le=1_000_000, description="Most tokens of an answer; vLLM generates exactly as many.")
    ] = 128
    input: Annotated[
        MountPath | None,
        Meta(
            description="A file of JSON lines with the field `prompt`, in place of random words.",
            examples=["/inputs/questions/test.jsonl"],
        ),
    ] = None


class Evaluate(Block):
    """The tasks that the workload `evaluate` gives to a Topology, with EleutherAI's lm-evaluation-harness."""

    image: Annotated[
        Image | None, Meta(description="Image with `lm_eval`. Default: `images.evaluate` of kaigen.yaml.")
    ] = None
    api: Api = "chat"
    tasks: Annotated[
        list[TaskName],
        Meta(min_length=1, max_length=100, description="Names of tasks.", examples=[["capitals"]]),
    ]
    folder: Annotated[
        MountPath | None,
        Meta(
            description="Folder with the YAML files of tasks, whose `dataset_kwargs.data_files` name files of the pod. "
            "Default: the folder of `inputs`.",
            examples=["/inputs/tasks"],
        ),
    ] = None
    metric: Annotated[
        Annotated[str, text(r"^[A-Za-z0-9_.,@-]+$", max_length=100)] | None,
        Meta(
            description="Metric of the tasks that `require.accuracy` compares, as lm-evaluation-harness names it. "
            "Default: the only one of `exact_match` and `acc` that a task has.",
            examples=["exact_match,strict-match"],
        ),
    ] = None
    limit: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Number of samples of each task. Default: all.")
    ] = None
    fewshot: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | None,
        Meta(description="Number of examples before each question. Default: that of the task."),
    ] = None
    concurrency: Annotated[int, Meta(ge=1, le=4096, description="Largest number of requests at the same time.")] = 8
    parameters: Annotated[
        dict[str, Json],
        Meta(
            description="Further fields of each request, as in the API of OpenAI.",
            examples=[{"max_tokens": 256, "temperature": 0}],
        ),
    ] = field(default_factory=dict)
