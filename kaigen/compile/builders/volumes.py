"""Volumes that an app mounts without making them: images, and folders of claims."""

from __future__ import annotations

from kaigen.compile.builders import settings
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.serving import ImageVolume

IMAGE_VOLUMES_SINCE = (1, 35)
"""Kubernetes version from which on image volumes are there by default (source: its documentation of image volumes)."""


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
