"""Findings for images whose names no registry and no node can read."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.images import is_image
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.pods import containers, pod_templates


def image_findings(obj: Object) -> Iterator[Problem]:
    """Check the names of the images of containers and volumes, in the pods of an object."""
    for path, image in _images(obj):
        if isinstance(image, str) and image and not is_image(image):
            yield Problem(
                codes.IMAGE_INVALID,
                f"`{image}` is not the name of an image",
                path,
                "write REGISTRY/REPOSITORY:TAG: a repository has small letters and digits, and between them `.`, `_`, "
                "`__`, `-` or `/`",
            )


def _images(obj: Object) -> Iterator[tuple[FieldPath, object]]:
    for template in pod_templates(obj):
        for container in containers(template):
            yield (*container.path, "image"), container.body.get("image")
        for number, volume in entries(template.spec.get("volumes")):
            reference = mapping(volume.get("image")).get("reference")
            yield (*template.spec_path, "volumes", number, "image", "reference"), reference
