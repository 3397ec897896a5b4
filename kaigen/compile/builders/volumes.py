"""Volumes that an app mounts without making them: images, and folders of claims."""

from __future__ import annotations

from kaigen.compile.builders import settings
from kaigen.compile.context import Context
from kaigen.compile.expressions import SpecPath, Tree
from kaigen.compile.problems import Problems
from kaigen.kinds.serving import ImageVolume

IMAGE_VOLUMES_SINCE = (1, 35)
"""Kubernetes version from which on image volumes are there by default (source: its documentation of image volumes)."""


def image_volume(name: str, image: ImageVolume, setting: str, origin: SpecPath) -> dict[str, Tree]:
    """A volume of an image's files.

    Args:
        name: of the volume.
        image: what is mounted.
        setting: path of the setting that holds the image's reference; empty for none.
        origin: where the image stands in the spec.
    """
    reference: Tree = (
        settings.text(setting, image.ref, "Image whose files are mounted.", origin=(*origin, "ref"))
        if setting
        else image.ref
    )
    policy: dict[str, Tree] = {"pullPolicy": image.pull_policy} if image.pull_policy else {}
    return {"name": name, "image": {"reference": reference, **policy}}


def read_only_mount(name: str, folder: str, path: str | None) -> dict[str, Tree]:
    """A volume, or the folder `path` of it, mounted where nobody can write to it."""
    below = (path or "").strip("/")
    sub: dict[str, Tree] = {"subPath": below} if below and below != "." else {}
    return {"name": name, "mountPath": folder, "readOnly": True, **sub}


def check_image_volumes(context: Context, problems: Problems, origin: SpecPath) -> None:
    """Tell when the target version has image volumes only behind a feature gate."""
    if tuple(map(int, context.target.split("."))) < IMAGE_VOLUMES_SINCE:
        problems.warning(
            "KG0346",
            f"Kubernetes {context.target} has image volumes only behind the feature gate ImageVolume",
            origin,
            "turn it on in the cluster, or use Kubernetes 1.35",
        )
