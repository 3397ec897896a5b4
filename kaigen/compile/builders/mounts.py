"""How files that are stored somewhere else reach a container: one record for every kind of source, and for several.

Each kind of source has one function that returns it: `mount_claim` and `mount_image` here,
`kaigen.compile.builders.job_output.mount_output` and `kaigen.compile.model.volume.mount_model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.job_gate import AwaitedRun
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Transfer
from kaigen.kinds.serving import ImageVolume

IMAGE_VOLUMES_SINCE = (1, 35)
"""Kubernetes version from which on image volumes are there by default (source: its documentation of image volumes)."""


class Readers(Struct, frozen=True, kw_only=True):
    """The pods of an app that read files of others.

    Attributes:
        kind: kind of the app's spec.
        namespace: namespace of the app.
        context: what it is compiled for.
        frame: names and labels of its objects.
        pods: greatest number of pods.
        noun: what they are in messages, such as `nodes`.
        spread: whether they are on several nodes for certain.
        has_gpu: whether they have GPUs.
    """

    kind: str
    namespace: str
    context: Context
    frame: Frame
    pods: int = 1
    noun: str = "pods"
    spread: bool = False
    has_gpu: bool


class MountPoint(Struct, frozen=True):
    """Where a pod mounts the files of a source.

    Attributes:
        volume: name of the volume in the pod.
        folder: mount path.
        gate: name of the container that waits for the files.
        settings: beginning of the paths of the settings that name the source, with a dot at the end.
        transfer: settings of the downloader, where this app has an image of its own for it.
        role: end of the roles of the objects by which this app mounts them.
    """

    volume: str
    folder: str
    gate: str
    settings: str
    transfer: Transfer | None = None
    role: str = ""


class Mounted(Struct, frozen=True):
    """How the files of a source reach a container.

    Attributes:
        folder: where the container reads them; empty for none.
        init: containers that run before it: the gate, or the download.
        permanent: exit codes of those after which a retry cannot succeed, by container.
        runs: the Jobs that those wait for.
        mounts: volume mounts of the container.
        volumes: volumes of the pod.
        objects: the objects of the app by which it mounts them.
        pull_secrets: names of Secrets to pull image volumes with.
        annotations: annotations that the pod needs to mount them.
        room: size of the volume with the files, in bytes; None where it is unknown.
        pinned: whether they are in a volume that only one node can mount.
        downloaded: whether kaigen's downloader fetches them in the pod.
    """

    folder: str = ""
    init: Sequence[dict[str, Tree]] = ()
    permanent: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    runs: Sequence[AwaitedRun] = ()
    mounts: Sequence[Mapping[str, Tree]] = ()
    volumes: Sequence[Tree] = ()
    objects: Sequence[Object] = ()
    pull_secrets: Sequence[str] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    room: int | None = None
    pinned: bool = False
    downloaded: bool = False


def together(sources: Iterable[Mounted]) -> Mounted:
    """Return how the files of several sources reach one container, each in its own folder."""
    each = [*sources]
    return Mounted(
        init=[container for one in each for container in one.init],
        permanent={name: codes for one in each for name, codes in one.permanent.items()},
        runs=[run for one in each for run in one.runs],
        mounts=[mount for one in each for mount in one.mounts],
        volumes=[volume for one in each for volume in one.volumes],
        objects=[item for one in each for item in one.objects],
        pull_secrets=[*dict.fromkeys(name for one in each for name in one.pull_secrets)],
        annotations={name: value for one in each for name, value in one.annotations.items()},
        pinned=any(one.pinned for one in each),
        downloaded=any(one.downloaded for one in each),
    )


def mount_claim(claim: Tree, point: MountPoint, path: str | None) -> Mounted:
    """Return the read-only mount of a claim.

    Args:
        claim: its name.
        point: where it is mounted.
        path: the folder in the volume; None for its root.
    """
    return Mounted(
        folder=point.folder,
        mounts=[read_only_mount(point.volume, point.folder, path)],
        volumes=[{"name": point.volume, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}],
    )


def mount_image(
    image: ImageVolume, point: MountPoint, readers: Readers, origin: FieldPath, problems: Problems, setting: str = ""
) -> Mounted:
    """Return the mount of an image's files.

    Args:
        image: the spec's block.
        point: where they are mounted.
        readers: the pods.
        origin: the spec's field of the image.
        problems: collects a warning about the version of Kubernetes.
        setting: path of the setting for the image's reference; empty for none.
    """
    check_image_volumes(readers.context, problems, origin)
    return Mounted(
        folder=point.folder,
        mounts=[read_only_mount(point.volume, point.folder, image.path)],
        volumes=[image_volume(point.volume, image, setting, origin)],
        pull_secrets=[each.name for each in image.pull_secrets],
    )


def check_mounts(
    mounts: Iterable[Mapping[str, Tree]], origin: Callable[[tuple[Tree, Tree]], FieldPath], problems: Problems
) -> None:
    """Report two volumes that are mounted at one folder.

    Args:
        mounts: volume mounts of a container.
        origin: the spec's field for the names of two volumes.
        problems: collects the errors.
    """
    volumes: dict[str, Tree] = {}
    for mount in mounts:
        folder, name = str(mount["mountPath"]).rstrip("/"), mount["name"]
        first = volumes.setdefault(folder, name)
        if first != name:
            problems.error(
                "KG0314",
                f"two volumes are mounted at `{folder}`: {first} and {name}",
                origin((name, first)),
                "set another `mountPath`",
            )


def image_volume(name: str, image: ImageVolume, setting: str, origin: FieldPath) -> dict[str, Tree]:
    """Return a volume of an image's files.

    Args:
        name: name of the volume.
        image: the spec's block.
        setting: path of the setting for the image's reference; empty for none.
        origin: the spec's field of the image.
    """
    reference: Tree = (
        settings.image(setting, image.ref, "Image whose files are mounted.", origin=(*origin, "ref"))
        if setting
        else image.ref
    )
    policy: dict[str, Tree] = {"pullPolicy": image.pull_policy} if image.pull_policy else {}
    return {"name": name, "image": {"reference": reference, **policy}}


def read_only_mount(name: str, folder: str, path: str | None) -> dict[str, Tree]:
    """Return a read-only mount of a volume, or of the folder `path` in it."""
    below = (path or "").strip("/")
    sub: dict[str, Tree] = {"subPath": below} if below and below != "." else {}
    return {"name": name, "mountPath": folder, "readOnly": True, **sub}


def check_image_volumes(context: Context, problems: Problems, origin: FieldPath) -> None:
    """Warn when the target version has image volumes only behind a feature gate."""
    if tuple(map(int, context.config.kubernetes.split("."))) < IMAGE_VOLUMES_SINCE:
        problems.warning(
            "KG0346",
            f"Kubernetes {context.config.kubernetes} has image volumes only behind the feature gate ImageVolume",
            origin,
            "enable it in the cluster, or use Kubernetes 1.35",
        )
