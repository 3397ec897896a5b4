"""Containers that users add to pods, and the objects that variables come from."""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import ENV_NAME, LabelName, MountPath, ObjectName, Quantity, text
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.blocks import Image
from kaigen.kinds.pod_volumes import SubPath
from kaigen.kinds.program import Variables


class EnvFrom(Choice):
    """An object whose keys become environment variables."""

    exactly_one: ClassVar[tuple[str, ...]] = ("secret", "config")

    secret: Annotated[ObjectName | None, Meta(description="Name of a Secret.")] = None
    config: Annotated[ObjectName | None, Meta(description="Name of a ConfigMap.")] = None
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
