"""Volumes that users add to pods."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import NO_BLANKS, RELATIVE_PATH, MountPath, ObjectName, Quantity, text
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.blocks import Volume
from kaigen.kinds.promotable import IMAGE

SubPath = Annotated[str, text(RELATIVE_PATH, min_length=1, max_length=1024)]


class Files(Block):
    """The keys of a ConfigMap or Secret as files."""

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
    config_map: Annotated[
        ObjectName | Files | None, Meta(description="A ConfigMap as files: its name, or a block.")
    ] = None
    secret: Annotated[ObjectName | Files | None, Meta(description="A Secret as files: its name, or a block.")] = None
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
