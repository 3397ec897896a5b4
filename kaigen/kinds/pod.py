"""Fields about pods that every kind has: accounts, containers, variables and volumes."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import (
    ENV_NAME,
    NO_BLANKS,
    RELATIVE_PATH,
    Annotations,
    LabelName,
    Labels,
    MountPath,
    ObjectName,
    ObjectRef,
    Quantity,
    text,
)
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.blocks import Env, Image, Volume
from kaigen.kinds.build import Build
from kaigen.kinds.promotable import IMAGE

SubPath = Annotated[str, text(RELATIVE_PATH, min_length=1, max_length=1024)]

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


class CreatedAccount(Block):
    """A ServiceAccount that kaigen creates for the app."""

    annotations: Annotated[
        Annotations,
        Meta(
            description="Annotations of the ServiceAccount, by which a cloud gives its pods an identity.",
            examples=[{"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/trainer"}],
        ),
    ] = field(default_factory=dict)


class ServiceAccount(Choice):
    """The ServiceAccount of the pods: an existing one, or one that kaigen creates."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "create")

    name: Annotated[
        ObjectName | None, Meta(description="An existing ServiceAccount in the same namespace.", examples=["trainer"])
    ] = None
    create: Annotated[
        CreatedAccount | None,
        Meta(
            description="Create a ServiceAccount with the name of the app (`NAME-download` for a Model); `{}` for "
            "one without annotations."
        ),
    ] = None
    automount_token: Annotated[
        bool,
        Meta(
            description="Mount a token for the Kubernetes API. The identities of clouds do not need it: their tokens "
            "are volumes of their own, or come from a metadata server."
        ),
    ] = False


class EnvFrom(Choice):
    """An object whose keys become environment variables."""

    exactly_one: ClassVar[tuple[str, ...]] = ("secret", "config")

    secret: Annotated[ObjectRef | None, Meta(description="A Secret.", examples=[{"name": "tokens"}])] = None
    config: Annotated[ObjectRef | None, Meta(description="A ConfigMap.")] = None
    prefix: Annotated[
        Annotated[str, text(ENV_NAME, max_length=128)] | None,
        Meta(description="Beginning of the names of the variables."),
    ] = None
    optional: Annotated[bool, Meta(description="Start without the object.")] = False


class Mount(Block):
    """Where a container mounts a volume of the pod."""

    path: Annotated[MountPath, Meta(description="Folder in the container.")]
    sub_path: Annotated[
        SubPath | None, Meta(description="Folder or file of the volume that is mounted. Default: its root.")
    ] = None
    read_only: Annotated[bool, Meta(description="Mount it read-only.")] = False


class ExtraContainer(Block):
    """A container next to kaigen's own, with the same hardened defaults."""

    image: Annotated[Image, Meta(description="Image: a reference, or a block with pull settings.")]
    command: Annotated[list[str], Meta(description="Entry point. Default: the image's.")] = field(default_factory=list)
    args: Annotated[list[str], Meta(description="Arguments of the entry point. Default: the image's.")] = field(
        default_factory=list
    )
    env: Variables = field(default_factory=dict)
    env_from: Annotated[list[EnvFrom], Meta(description="ConfigMaps and Secrets whose keys become variables.")] = field(
        default_factory=list
    )
    mounts: Annotated[
        dict[LabelName, MountPath | Mount],
        Meta(
            description="Folders by name of the volume: one of `volumes`, or one of kaigen's own, such as `output`.",
            examples=[{"logs": "/var/log/app"}],
        ),
    ] = field(default_factory=dict)
    cpu: Annotated[Quantity, Meta(description="CPU cores to request.")] = "50m"
    memory: Annotated[Quantity, Meta(description="Memory to request, and its limit.")] = "128Mi"
    run_as_user: Annotated[
        Annotated[int, Meta(ge=0, le=2147483647)] | None,
        Meta(description="User id of the processes. Default: that of the pod."),
    ] = None
    read_only_root_filesystem: Annotated[bool, Meta(description="Mount the root file system read-only.")] = True


class InitContainer(ExtraContainer):
    """A container that ends before the main container starts."""


class Sidecar(ExtraContainer):
    """A container that starts before all others and runs as long as the pod. A Job does not wait for it."""

    ports: Annotated[
        dict[
            Annotated[str, text(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=15)],
            Annotated[int, Meta(ge=1, le=65535)],
        ],
        Meta(description="Ports by name.", examples=[{"metrics": 9090}]),
    ] = field(default_factory=dict)
    startup_probe: Annotated[
        JsonObject | None, Meta(description="As in a pod; the next container starts when it succeeds.")
    ] = None
    readiness_probe: Annotated[JsonObject | None, Meta(description="As in a pod.")] = None
    liveness_probe: Annotated[JsonObject | None, Meta(description="As in a pod.")] = None


class Files(Block):
    """The keys of a ConfigMap or Secret as files."""

    text_means: ClassVar[str] = "name"

    name: Annotated[ObjectName, Meta(description="Name of the object.", examples=["tuning"])]
    items: Annotated[
        dict[Annotated[str, text(r"^[-._a-zA-Z0-9]+$", max_length=253)], SubPath],
        Meta(
            description="Paths of files by key. Default: every key, as a file of its name.",
            examples=[{"config": "train.yaml"}],
        ),
    ] = field(default_factory=dict)
    optional: Annotated[bool, Meta(description="Start without the object.")] = False
    default_mode: Annotated[
        Annotated[int, Meta(ge=0, le=511)] | None,
        Meta(description="Mode of the files. Default: 0644.", examples=[0o440]),
    ] = None


class EmptyDir(Block):
    """Scratch space of the pod."""

    size_limit: Annotated[Quantity | None, Meta(description="Limit of its size.", examples=["5Gi"])] = None
    medium: Annotated[
        Literal["Memory", "HugePages"] | None, Meta(description="`Memory` for RAM. Default: the node's disk.")
    ] = None


class PodVolume(Choice):
    """A volume of the pods, and where the main container mounts it."""

    exactly_one: ClassVar[tuple[str, ...]] = (
        "claimName",
        "configMap",
        "secret",
        "emptyDir",
        "ephemeral",
        "csi",
        "image",
        "projected",
    )

    claim_name: Annotated[
        ObjectName | None, Meta(description="An existing PersistentVolumeClaim.", examples=["datasets"])
    ] = None
    config_map: Annotated[Files | None, Meta(description="A ConfigMap as files.", examples=[{"name": "tuning"}])] = None
    secret: Annotated[Files | None, Meta(description="A Secret as files.", examples=[{"name": "license"}])] = None
    empty_dir: Annotated[EmptyDir | None, Meta(description="Scratch space; `{}` for the defaults.")] = None
    ephemeral: Annotated[
        Volume | None, Meta(description="A volume that Kubernetes creates and deletes with each pod.")
    ] = None
    csi: Annotated[JsonObject | None, Meta(description="A volume of a CSI driver, as in a pod.")] = None
    image: Annotated[
        Annotated[str, IMAGE, text(NO_BLANKS, min_length=1, max_length=512)] | None,
        Meta(
            description="The files of an OCI image, read-only. `imagePullSecrets` are used to pull it.",
            examples=["ghcr.io/org/alpaca:1"],
        ),
    ] = None
    projected: Annotated[
        JsonObject | None,
        Meta(description="Several sources in one folder, such as a token with an audience, as in a pod."),
    ] = None
    mount_path: Annotated[
        MountPath | None,
        Meta(description="Folder in the main container. Default: only containers with the volume in `mounts` have it."),
    ] = None
    sub_path: Annotated[
        SubPath | None, Meta(description="Folder or file of the volume that is mounted. Default: its root.")
    ] = None
    read_only: Annotated[
        bool | None, Meta(description="Mount it read-only. Default: true for ConfigMaps, Secrets and `projected`.")
    ] = None


class PodFields(Block):
    """Fields about pods that every kind has; schemas list them after the kind's own."""

    shared: ClassVar[bool] = True

    service_account: Annotated[
        ObjectName | ServiceAccount | None,
        Meta(
            description="ServiceAccount of the pods: the name of an existing one, or a block. Default: the "
            "namespace's `default`, without a token."
        ),
    ] = None
    pod_labels: Annotated[Labels, Meta(description="Labels of the pods only, besides those of `metadata.labels`.")] = (
        field(default_factory=dict)
    )
    pod_annotations: Annotated[
        Annotations, Meta(description="Annotations of the pods only, besides those of `metadata.annotations`.")
    ] = field(default_factory=dict)
    volumes: Annotated[
        dict[LabelName, PodVolume],
        Meta(
            description="Further volumes of the pods, by name.",
            examples=[{"data": {"claimName": "datasets", "mountPath": "/data"}}],
        ),
    ] = field(default_factory=dict)
    env_from: Annotated[list[EnvFrom], Meta(description="ConfigMaps and Secrets whose keys become variables.")] = field(
        default_factory=list
    )
    sidecars: Annotated[
        dict[LabelName, Sidecar], Meta(description="Containers that run next to the main container, by name.")
    ] = field(default_factory=dict)
    init_containers: Annotated[
        dict[LabelName, InitContainer],
        Meta(description="Containers that run before the main container, by name, after kaigen's own."),
    ] = field(default_factory=dict)
    image_pull_secrets: Annotated[
        list[ObjectRef],
        Meta(
            description="Secrets of type dockerconfigjson, for all images, as in a pod.",
            examples=[[{"name": "registry-login"}]],
        ),
    ] = field(default_factory=list)
    hostname: Annotated[LabelName | None, Meta(description="Host name of the pod.")] = None
    dns_policy: Annotated[
        Literal["ClusterFirst", "Default", "None"] | None,
        Meta(description="How the pods look up names. Default: in the cluster first."),
    ] = None
    dns_config: Annotated[
        JsonObject | None, Meta(description="Name servers, search domains and options, as in a pod.")
    ] = None
    host_aliases: Annotated[list[JsonObject], Meta(description="Entries of `/etc/hosts`, as in a pod.")] = field(
        default_factory=list
    )
