"""Blocks that several kinds share: resources, placement, image, environment, security, volumes."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import Json, JsonObject
from kaigen.kinds.base import (
    ABSOLUTE_FILE,
    ADDRESS,
    ENV_NAME,
    FILE_PATH,
    LABEL_KEY,
    NO_BLANKS,
    PARAM_NAME,
    RELATIVE_PATH,
    REPOSITORY,
    SHA256,
    AppName,
    KeyRef,
    LabelName,
    Labels,
    MountPath,
    ObjectName,
    ObjectRef,
    Quantity,
    TokenSecret,
    text,
)
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.promotable import IMAGE, NAME, REVISION
from kaigen.kinds.sources import DUPLICATES, S3, Oci, WeightsArtifact, WeightsBucket

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
PodSecurity = Literal["restricted", "baseline", "privileged"]


class GpuShare(Choice):
    """A MIG slice, or a claim through Dynamic Resource Allocation, in place of a number of whole GPUs."""

    exactly_one: ClassVar[tuple[str, ...]] = ("profile", "deviceClassName")

    profile: Annotated[
        Annotated[str, text(r"^[1-9]g\.[0-9]+gb(\.me)?$")] | None,
        Meta(description="MIG profile, as the node's device plugin names it.", examples=["1g.10gb"]),
    ] = None
    device_class_name: Annotated[
        ObjectName | None,
        Meta(description="DeviceClass to claim from (`resource.k8s.io/v1`).", examples=["gpu.nvidia.com"]),
    ] = None
    count: Annotated[int, Meta(ge=1, le=64, description="Number of slices or devices.")] = 1


Gpus = Annotated[int, Meta(ge=0, le=64)] | GpuShare


InstanceType = Annotated[str, text(r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=63)]


class Resources(Block):
    """Resources of a container. CPU and memory are requests; memory is also the limit."""

    gpus: Annotated[Gpus | None, Meta(description="Number of whole GPUs, a MIG slice, or a device claim.")] = None
    gpu_type: Annotated[
        str | None,
        Meta(
            description="GPU model by its catalogue name; becomes a node selector of the profile.",
            examples=["L4", "A100-80GB"],
        ),
    ] = None
    instance_type: Annotated[
        InstanceType | None,
        Meta(description="Instance type of the node, as in the label `node.kubernetes.io/instance-type`."),
    ] = None
    cpu: Annotated[Quantity | None, Meta(description="CPU cores to request.", examples=["4", "500m"])] = None
    memory: Annotated[Quantity | None, Meta(description="Memory to request, and its limit.", examples=["16Gi"])] = None
    ephemeral_storage: Annotated[
        Quantity | None,
        Meta(description="Scratch disk of the container (limit of its writable layer and scratch volumes)."),
    ] = None
    shared_memory: Annotated[Quantity | None, Meta(description="Size of `/dev/shm`; it counts as memory.")] = None
    extra: Annotated[
        dict[
            Annotated[
                str,
                text(
                    r"^(hugepages-[0-9]+[KMGT]i|[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$",
                    max_length=317,
                ),
            ],
            Quantity,
        ],
        Meta(
            description="Further resources to request, such as network devices and huge pages.",
            examples=[{"vpc.amazonaws.com/efa": 4, "hugepages-2Mi": "5Gi"}],
        ),
    ] = field(default_factory=dict)


Level = Annotated[str, text(LABEL_KEY, max_length=317)]
"""A level of the network: `block`, `rack` or `host`, which the profile has node labels for, or a node label."""


class Nearness(Choice):
    """How near to each other the pods of a workload must be, by a level of the network."""

    exactly_one: ClassVar[tuple[str, ...]] = ("required", "preferred")

    required: Annotated[
        Level | None,
        Meta(description="The pods wait until one block, rack or host has room for all.", examples=["rack"]),
    ] = None
    preferred: Annotated[
        Level | None, Meta(description="The pods are as near to each other as there is room.", examples=["rack"])
    ] = None


SPREAD: Mapping[str, Json] = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
}
"""The constraint of pods that would rather be on different nodes."""


class Placement(Block):
    """Where pods may run, and their priority."""

    node_selector: Annotated[Labels, Meta(description="Labels that a node must have.")] = field(default_factory=dict)
    tolerations: Annotated[list[JsonObject], Meta(description="Tolerations, as in a pod.")] = field(
        default_factory=list
    )
    affinity: Annotated[JsonObject | None, Meta(description="Affinity, as in a pod.")] = None
    topology_spread: Annotated[
        list[JsonObject],
        Meta(description="Topology spread constraints, as in a pod. Default `labelSelector`: the pods of the app."),
    ] = field(default_factory=list)
    priority_class_name: Annotated[ObjectName | None, Meta(description="PriorityClass of the pods.")] = None
    runtime_class_name: Annotated[
        Annotated[str, Meta(max_length=253)] | None,
        Meta(description='RuntimeClass of the pods. Default: the profile\'s for GPU pods. `""` sets none.'),
    ] = None
    scheduler_name: Annotated[
        ObjectName | None, Meta(description="Scheduler of the pods. Default: that of Kubernetes.")
    ] = None
    queue: Annotated[LabelName | None, Meta(description="Kueue LocalQueue that admits the pods.")] = None
    priority: Annotated[
        LabelName | None,
        Meta(
            description="WorkloadPriorityClass of Kueue: which workload of the queue starts first, and which one is "
            "preempted. The scheduler of Kubernetes does not read it.",
            examples=["research-low"],
        ),
    ] = None
    topology: Annotated[
        Nearness | None,
        Meta(
            description="How near to each other Kueue places the pods, in a queue with a `topology`.",
            examples=[{"required": "rack"}],
        ),
    ] = None
    spot: Annotated[
        bool,
        Meta(description="Run on spot (preemptible) nodes, with the node selector and tolerations of the profile."),
    ] = False


class ImageBlock(Block):
    """A container image and how to pull it."""

    ref: Annotated[
        str,
        IMAGE,
        text(
            NO_BLANKS,
            min_length=1,
            max_length=512,
            description="Image reference, preferably with a digest.",
            examples=["ghcr.io/org/train@sha256:…", "python:3.12-slim"],
        ),
    ]
    pull_policy: Annotated[
        Literal["Always", "IfNotPresent", "Never"] | None,
        Meta(description="When to pull the image. Default: the default of Kubernetes."),
    ] = None
    pull_secrets: Annotated[
        list[ObjectRef],
        Meta(description="Secrets of type dockerconfigjson.", examples=[[{"name": "registry-login"}]]),
    ] = field(default_factory=list)


Image = Annotated[str, text(NO_BLANKS, min_length=1, max_length=512), IMAGE] | ImageBlock


class EnvSource(Choice):
    """Source of an environment variable, read when the container starts."""

    exactly_one: ClassVar[tuple[str, ...]] = ("secret", "config")

    secret: Annotated[KeyRef | None, Meta(description="A key of a Secret.")] = None
    config: Annotated[KeyRef | None, Meta(description="A key of a ConfigMap.")] = None


EnvValue = str | int | bool | EnvSource
Env = dict[Annotated[str, text(ENV_NAME, max_length=128)], EnvValue]
Params = dict[Annotated[str, text(PARAM_NAME, max_length=120)], Json]
"""Parameters of a container by name, which become variables and a file."""

ParamsFile = Annotated[
    Annotated[str, text(ABSOLUTE_FILE, max_length=1024)] | None,
    Meta(
        description="Path of the file with the parameters. It is there without `params` too, as `{}`. Default: "
        "`/etc/kaigen/params.json`, only with `params`.",
        examples=["/content/params.json"],
    ),
]


class PodUser(Block):
    """Security settings of the pods: their level, user and group. The defaults satisfy Pod Security "restricted"."""

    pod_security: Annotated[
        PodSecurity,
        Meta(
            description="Pod Security level that the pods satisfy. `baseline` allows the user of the image, root "
            "included; `privileged` allows every capability. Both appear in every diff."
        ),
    ] = "restricted"
    run_as_user: Annotated[
        Annotated[int, Meta(ge=0, le=2147483647)] | None,
        Meta(
            description="User id of the processes. Default: 65532 for `restricted`. 0 requires `podSecurity: baseline`."
        ),
    ] = None
    fs_group: Annotated[
        Annotated[int, Meta(ge=0, le=2147483647)] | None,
        Meta(description="Group id of mounted volumes. Default: `runAsUser`."),
    ] = None


class Security(PodUser):
    """Security settings of the pods. The defaults satisfy Pod Security "restricted"."""

    read_only_root_filesystem: Annotated[
        bool | None,
        Meta(
            description="Mount the root file system read-only. Default: true; false in containers with a GPU, "
            "whose driver hook writes to it."
        ),
    ] = None
    capabilities: Annotated[
        list[Annotated[str, text(r"^[A-Z][A-Z_]*$", max_length=40)]],
        Meta(
            description="Linux capabilities of the container, such as IPC_LOCK for RDMA. Only root has them, so they "
            "require `podSecurity: baseline`, and those that it forbids `privileged`.",
            examples=[["IPC_LOCK"]],
        ),
    ] = field(default_factory=list)


RepoName = Annotated[str, text(REPOSITORY, max_length=200), NAME]
"""A repository on the Hugging Face Hub, `owner/name`."""
RevisionName = Annotated[str, text(r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", min_length=1, max_length=200), REVISION]
"""A commit, tag or branch of a repository."""


class HubRepository(Block):
    """Files of a repository on the Hugging Face Hub."""

    namespace: ClassVar[str] = ""
    """Folder of the Hub with the repositories of this type; empty for models."""

    @property
    def keeps_duplicates(self) -> bool:
        """Whether weights are downloaded that the repository has as safetensors files already."""
        return False

    repo: Annotated[RepoName, Meta(description="Repository, `owner/name`.", examples=["Qwen/Qwen2.5-0.5B-Instruct"])]
    revision: Annotated[
        RevisionName,
        Meta(description="Commit (preferred), tag or branch.", examples=["7ae557604adf67be50417f59c2c2f167def9a775"]),
    ] = "main"
    include: Annotated[
        list[Annotated[str, Meta(min_length=1)]],
        Meta(description="Globs of files to download. Default: all files.", examples=[["*.safetensors", "*.json"]]),
    ] = field(default_factory=list)
    exclude: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(description="Globs of files to skip.")] = field(
        default_factory=list
    )
    token_secret: Annotated[
        TokenSecret | None,
        Meta(description="Secret with a Hub token, for gated or private repositories. Only the downloader reads it."),
    ] = None
    endpoint: Annotated[
        Annotated[str, text(ADDRESS)] | None, Meta(description="URL of a Hub mirror. Default: the public Hub.")
    ] = None


class HuggingFace(HubRepository):
    """A repository on the Hugging Face Hub."""

    duplicates: Annotated[bool, DUPLICATES] = False

    @property
    def keeps_duplicates(self) -> bool:
        """As the spec says."""
        return self.duplicates


class HubDataset(HubRepository):
    """A dataset on the Hugging Face Hub."""

    namespace: ClassVar[str] = "datasets/"

    @property
    def keeps_duplicates(self) -> bool:
        """Every file is data."""
        return True


class HttpFile(Block):
    """A file at a URL, verified by its checksum."""

    url: Annotated[
        str,
        text(
            ADDRESS,
            max_length=4000,
            description="URL of the file.",
            examples=["https://models.example.com/qwen/model.safetensors"],
        ),
    ]
    sha256: Annotated[str, text(SHA256, description="SHA-256 checksum, 64 hex digits.")]
    path: Annotated[
        Annotated[str, text(FILE_PATH, max_length=1024)] | None,
        Meta(description="Path of the file in the volume. Default: the last segment of the URL."),
    ] = None


class Http(Block):
    """Files from web servers."""

    files: Annotated[
        list[HttpFile], Meta(min_length=1, max_length=1000, description="The files, each with its checksum.")
    ]


class ModelSignature(Block):
    """The signature that downloaded files must have, in the format of OpenSSF Model Signing 1.0."""

    public_keys: Annotated[
        list[Annotated[str, text(r"^-----BEGIN PUBLIC KEY-----\s[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*$")]],
        Meta(
            min_length=1,
            description="Public keys in PEM, ECDSA on P-256, P-384 or P-521, of which one must have signed.",
        ),
    ]
    file: Annotated[
        str,
        text(
            RELATIVE_PATH,
            max_length=1024,
            description="Path of the signature among the files. It lists the SHA-256 of each file; other files are "
            "refused.",
        ),
    ] = "model.sig"


class FileSource(Choice):
    """Source of files."""

    exactly_one: ClassVar[tuple[str, ...]] = ("huggingFace", "http", "s3", "oci")

    hugging_face: Annotated[HubRepository | None, Meta(description="A repository on the Hugging Face Hub.")] = None
    http: Annotated[Http | None, Meta(description="Files from web servers.")] = None
    s3: Annotated[S3 | None, Meta(description="Files of a bucket.")] = None
    oci: Annotated[Oci | None, Meta(description="An OCI artifact, or an image with files in its layers.")] = None
    signature: Annotated[
        ModelSignature | None,
        Meta(description="Download nothing whose signature is missing or wrong. Not for `volume`."),
    ] = None


class Source(FileSource):
    """Source of model weights."""

    hugging_face: Annotated[HuggingFace | None, Meta(description="A repository on the Hugging Face Hub.")] = None
    s3: Annotated[WeightsBucket | None, Meta(description="Files of a bucket.")] = None
    oci: Annotated[
        WeightsArtifact | None, Meta(description="An OCI artifact, or an image with files in its layers.")
    ] = None


class Volume(Block):
    """A PersistentVolumeClaim that kaigen creates."""

    size: Annotated[Quantity, Meta(description="Size to request, in bytes with a unit.", examples=["50Gi"])]
    storage_class_name: Annotated[
        Annotated[str, Meta(max_length=253)] | None,
        Meta(description='StorageClass. Default: the profile\'s. `""` uses the default class of the cluster.'),
    ] = None
    access_modes: Annotated[list[AccessMode], Meta(min_length=1, description="Access modes of the claim.")] = field(
        default_factory=lambda: ["ReadWriteOnce"]
    )


class Transfer(Block):
    """Settings of the downloader."""

    image: Annotated[Image | None, Meta(description="Image of the downloader. Default: kaigen's own.")] = None
    memory: Annotated[
        Quantity | None,
        Meta(description="Memory of the downloader. Default: 512Mi, or more for a bucket with many or large parts."),
    ] = None
    cpu: Annotated[Quantity | None, Meta(description="CPU of the downloader. Default: 500m.")] = None
    concurrency: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | None, Meta(description="Connections for one large file. Default: 4.")
    ] = None
    part_size: Annotated[Quantity | None, Meta(description="Bytes of one request. Default: 16Mi.")] = None
    proxy: Annotated[
        Annotated[str, text(r"^https?://[^\s@]+$")] | None,
        Meta(description="HTTP proxy for the download, without credentials."),
    ] = None


class Mounted(Block):
    """A Model or Dataset whose files a container reads."""

    name: Annotated[AppName, Meta(description="A Model or Dataset.", examples=["qwen"])]
    namespace: Annotated[
        LabelName | None,
        Meta(
            description="Its namespace. Default: that of the app. Another one requires that its files are in a bucket, "
            "which the app then mounts itself."
        ),
    ] = None
    mount_path: Annotated[
        MountPath | None, Meta(description="Folder in the container. Default: `/models/NAME`, or `/datasets/NAME`.")
    ] = None
