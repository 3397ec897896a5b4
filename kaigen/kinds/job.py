"""The kind `Job`: a workload that runs to completion."""

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import (
    ADDRESS,
    FILE_PATH,
    LIFETIME,
    SHA256,
    AppName,
    Duration,
    KeyRef,
    LabelName,
    Metadata,
    MountPath,
    text,
)
from kaigen.kinds.block import Block, Choice, later
from kaigen.kinds.blocks import Params, ParamsFile, Placement, Resources, Security, Source, Transfer, Volume
from kaigen.kinds.bucket import LOCATION, FilledBucket
from kaigen.kinds.classify import Classify
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.gate import Benchmark, Evaluate, Require, Target
from kaigen.kinds.generate import Generate
from kaigen.kinds.pod import Args, BuiltImage, Command, GivenImage, PodFields, Variables
from kaigen.kinds.schedule import Cron, Schedule
from kaigen.kinds.sources import S3, Globs
from kaigen.kinds.tune import Tune

if TYPE_CHECKING:
    from kaigen.kinds.monitoring import RunMonitoring
else:
    RunMonitoring = later("kaigen.kinds.monitoring:RunMonitoring")

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


NAMESPACE_OF_MODEL = (
    "Namespace of the Model. Default: that of the app. Another one requires that its files are in a bucket, which the "
    "app then mounts itself."
)
NAMESPACE_OF_DATASET = NAMESPACE_OF_MODEL.replace("Model", "Dataset")


class ModelUse(Choice):
    """Weights that a container reads."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "source")

    name: Annotated[AppName | None, Meta(description="A Model.", examples=["qwen"])] = None
    namespace: Annotated[LabelName | None, Meta(description=NAMESPACE_OF_MODEL)] = None
    source: Annotated[
        Source | None,
        Meta(
            description="Weights that this pod downloads to `output.volume` before its container starts. For "
            "weights that nothing else uses."
        ),
    ] = None
    mount_path: Annotated[MountPath, Meta(description="Folder of the weights in the container.")] = "/model"
    transfer: Annotated[Transfer, Meta(description="Settings of the downloader for `source`.")] = field(
        default_factory=Transfer
    )


ModelRef = AppName | ModelUse


class InputBucket(S3):
    """Files below a prefix of a bucket that each run lists and downloads."""

    newest: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)] | None,
        Meta(description="Only so many files, those that were modified last. Default: all files.", examples=[10]),
    ] = None
    modified_within: Annotated[
        Duration | None,
        Meta(
            description="Only files that were modified in this time before the run. If there are none, the run fails. "
            "Default: files of any age.",
            examples=["25h"],
        ),
    ] = None

    @property
    def is_recent(self) -> bool:
        """Whether files are chosen by the time of their last change."""
        return self.newest is not None or self.modified_within is not None


class Input(Choice):
    """Files that are downloaded or uploaded before the container starts, or those of a Dataset."""

    exactly_one: ClassVar[tuple[str, ...]] = ("url", "secret", "s3", "wait", "dataset")

    url: Annotated[
        Annotated[str, text(ADDRESS, max_length=4000)] | None,
        Meta(description="URL of the file.", examples=["https://data.example.com/train.parquet"]),
    ] = None
    secret: Annotated[
        KeyRef | None,
        Meta(description="Key of a Secret with the URL, such as a signed URL. Only the downloader reads it."),
    ] = None
    s3: Annotated[
        InputBucket | None,
        Meta(description="Files of a bucket, downloaded to the folder `path` as they are when the run starts."),
    ] = None
    wait: Annotated[
        Duration | None,
        Meta(
            description="Longest time to wait until somebody uploads the file to `path` in `output.volume`. "
            "Requires `into: output`.",
            examples=["2h"],
        ),
    ] = None
    dataset: Annotated[
        AppName | None,
        Meta(
            description="A Dataset. Its files are mounted read-only in the folder `path`.",
            examples=["alpaca"],
        ),
    ] = None
    namespace: Annotated[LabelName | None, Meta(description=NAMESPACE_OF_DATASET)] = None
    sha256: Annotated[
        Annotated[str, text(SHA256)] | None,
        Meta(description="SHA-256 checksum, 64 hex digits. Default: the file is not verified."),
    ] = None
    path: Annotated[
        Annotated[str, text(FILE_PATH, max_length=1024)] | None,
        Meta(
            description="Path of the file in the folder; of a bucket or a Dataset, the folder of its files. Default: "
            "the last segment of `url` or of the bucket's prefix, or the Dataset's name.",
            examples=["train.parquet"],
        ),
    ] = None


class Inputs(Block):
    """Files that each pod downloads or waits for before its container starts."""

    files: Annotated[list[Input], Meta(min_length=1, max_length=1000, description="The files.")]
    into: Annotated[
        Literal["output"] | None,
        Meta(
            description="Where the files are stored. `output`: in `output.volume`, where they stay with the results. "
            "Default: in a folder of the pod."
        ),
    ] = None
    mount_path: Annotated[MountPath, Meta(description="Folder of the files in the container.")] = "/inputs"
    transfer: Annotated[Transfer, Meta(description="Settings of the downloader.")] = field(default_factory=Transfer)


InputsRef = Annotated[list[Input], Meta(min_length=1, max_length=1000)] | Inputs


class OutputVolume(Volume):
    """The volume for results."""

    mount_path: Annotated[MountPath, Meta(description="Folder for results in the container.")] = "/output"
    retain: Annotated[bool, Meta(description="Keep the volume with the results when the spec is deleted.")] = True
    ttl: Annotated[
        Ttl | VolumeTtl | None,
        Meta(
            description="Lifetime of the volume, counted from the end of the run: a duration, seconds, `never`, or a "
            "block. A Job of kaigen-reaper creates the volume, and kaigen-reaper deletes it. Such a volume is "
            "not retained. Default: the volume stays.",
            examples=["1h"],
        ),
    ] = None


class OutputBucket(FilledBucket):
    """A folder of a bucket to which the results are copied when the run has completed."""

    uri: Annotated[
        str,
        text(
            LOCATION,
            max_length=1024,
            description="Bucket and prefix; each Job needs its own prefix. Each run has a folder of its name there.",
            examples=["s3://acme-results/finetune"],
        ),
    ]
    include: Annotated[
        Globs, Meta(description="Globs of files to upload. Default: all files.", examples=[["*.safetensors"]])
    ] = field(default_factory=list)
    exclude: Annotated[Globs, Meta(description="Globs of files to skip.", examples=[["checkpoint-*/"]])] = field(
        default_factory=list
    )
    skip_if_complete: Annotated[
        bool,
        Meta(
            description="Do not run again what the bucket has: the pod restores the results to the volume and ends, as "
            "in a cluster that was built anew. An image of your own must have `sh`, and `command` must be set. "
            "Default: false."
        ),
    ] = False
    transfer: Annotated[Transfer, Meta(description="Settings of the uploader.")] = field(default_factory=Transfer)


class Output(Block):
    """Where results go."""

    volume: Annotated[OutputVolume, Meta(description="A volume of the cluster.")]
    bucket: Annotated[
        OutputBucket | None,
        Meta(
            description="A bucket to which a second Job copies the results from the volume, with checksums, when the "
            "run has completed."
        ),
    ] = None


class JobSpec(Choice, PodFields):
    """What runs, with which inputs, outputs and resources."""

    exactly_one: ClassVar[tuple[str, ...]] = ("image", "build", "template", "workload", "tune")

    image: GivenImage = None
    build: BuiltImage = None
    workload: Annotated[
        Literal["benchmark", "classify", "evaluate", "generate"] | None,
        Meta(
            description="One of kaigen's own programs, in place of an image. `classify` labels images, `generate` "
            "asks vLLM about each line of files. `benchmark` measures the speed of a Topology, `evaluate` its answers."
        ),
    ] = None
    classify: Annotated[
        Classify | None, Meta(description="Settings of `workload: classify`: network, weights, images, result.")
    ] = None
    generate: Annotated[
        Generate | None,
        Meta(description="Settings of `workload: generate`: task, prompt, input, parameters of the requests."),
    ] = None
    benchmark: Annotated[
        Benchmark | None, Meta(description="Settings of `workload: benchmark`: number, rate and length of requests.")
    ] = None
    evaluate: Annotated[
        Evaluate | None, Meta(description="Settings of `workload: evaluate`: tasks and how they are asked.")
    ] = None
    target: Annotated[
        AppName | Target | None,
        Meta(description="The Topology that `benchmark` or `evaluate` judges: its name, or a block."),
    ] = None
    require: Annotated[
        Require | None,
        Meta(
            description="What `benchmark` or `evaluate` must measure. If it does not, the Job fails, and "
            "`kaigen promote` refuses.",
            examples=[{"ttft": {"p95": "500ms"}, "throughput": {"min": 300}}],
        ),
    ] = None
    tune: Annotated[
        Tune | None,
        Meta(
            description="Fine-tunes the model on the inputs with kaigen's own program, in place of an image, and "
            "stores the adapter or the model in the output."
        ),
    ] = None
    template: Annotated[
        JsonObject | None,
        Meta(
            description="A pod template that is used unchanged, in place of an image; `metadata` and `spec` as "
            "in a Job. Of the other fields, `retries`, `deadline`, `ttl`, `placement.queue` and "
            "`security.podSecurity` apply."
        ),
    ] = None
    command: Command = None
    args: Args = None
    env: Variables = field(default_factory=dict)
    params: Annotated[
        Params, Meta(description="Parameters of the job, as `PARAM_*` variables and in `/etc/kaigen/params.json`.")
    ] = field(default_factory=dict)
    params_file: ParamsFile = None
    monitoring: Annotated[
        RunMonitoring | None, Meta(description="Alerts on runs that fail, do not end or do not start. Default: none.")
    ] = None
    schedule: Annotated[
        Cron | Schedule | None,
        Meta(
            description="When runs start, as a cron expression in UTC or a block. Each run writes to a folder of its "
            "own in `output.volume`. Default: one run, and another one whenever the spec changes.",
            examples=["0 2 * * *"],
        ),
    ] = None
    model: Annotated[ModelRef | None, Meta(description="Weights to read: the name of a Model, or a block.")] = None
    inputs: Annotated[
        InputsRef | None, Meta(description="Files to download to `/inputs` before the container starts, and Datasets.")
    ] = None
    output: Annotated[Output | None, Meta(description="Where results go.")] = None
    resources: Annotated[Resources, Meta(description="Resources of the container.")] = field(default_factory=Resources)
    placement: Annotated[Placement, Meta(description="Where the pods run.")] = field(default_factory=Placement)
    security: Annotated[Security, Meta(description="Security settings of the pods.")] = field(default_factory=Security)
    nodes: Annotated[
        int,
        Meta(
            ge=1,
            le=1024,
            description="Number of pods that work together, each on its own node. They have stable host names "
            "and the variables of torchrun: `PET_NNODES`, `PET_NODE_RANK`, `PET_MASTER_ADDR`, `PET_MASTER_PORT` "
            "and `PET_NPROC_PER_NODE`, the first four also without `PET_`.",
        ),
    ] = 1
    shards: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Number of pods that share the work, each independent of the others. A pod reads its number "
            "from `JOB_COMPLETION_INDEX`, from 0, and the number of all from `SHARDS`.",
        ),
    ] = 1
    parallelism: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="Number of shards that run at the same time. Default: all."),
    ] = None
    max_failed_shards: Annotated[
        Annotated[int, Meta(ge=0, le=100_000)] | None,
        Meta(
            description="Number of failed shards with which the others go on. With one more, the Job ends at once. "
            "Default: all others go on."
        ),
    ] = None
    groups: Annotated[
        Literal["jobSet", "indexedJob", "trainJob"] | None,
        Meta(
            description="Workload kind for several nodes. Default: JobSet if the profile has it. `trainJob` is a "
            "TrainJob of Kubeflow Trainer with a TrainingRuntime of its own."
        ),
    ] = None
    retries: Annotated[
        int,
        Meta(ge=0, le=100, description="Number of retries of a failed pod. With several nodes, all pods start again."),
    ] = 2
    deadline: Annotated[
        Duration | None,
        Meta(description="Time limit of the job, including retries; of each attempt with a JobSet or TrainJob."),
    ] = None
    ttl: Annotated[
        Ttl | PodTtl | None,
        Meta(
            description="How long the pods of a finished run are kept: a duration, seconds, `never`, or a block. "
            "kaigen-reaper deletes them; the Job stays. Default: the pods stay as long as the Job.",
            examples=["1h"],
        ),
    ] = None


class Job(Block):
    """A workload that runs to completion: fine-tuning, evaluation, batch inference."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")] = API_VERSION
    kind: Annotated[Literal["Job"], Meta(description="Kind of the document.")] = "Job"
    metadata: Annotated[Metadata, Meta(description="Name, namespace, labels and annotations of the app.")]
    spec: Annotated[JobSpec, Meta(description="Desired state.")]
