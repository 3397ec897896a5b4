"""The images that the pods of objects need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kaigen.kubernetes.pods import CONTAINER_FIELDS, is_single_container


def images_of(objects: Iterable[Any]) -> list[str]:
    """Return every image that pods of these objects run or mount, sorted, without duplicates.

    Pods and single containers are found at any depth by their form, so also in custom resources.
    """
    return sorted({image for item in objects for image in image_fields(item)})


def image_fields(item: Any) -> list[str]:
    """Return the image of every container and image volume of an object, in the order of its fields."""
    return list(_images(item))


def _images(node: Any, key: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        if key not in CONTAINER_FIELDS and is_single_container(node):
            yield node["image"]
        for name, value in node.items():
            if name == "volumes" and isinstance(value, list):
                yield from _mounted(value)
            yield from _images(value, name)
    elif isinstance(node, list):
        for value in node:
            if key in CONTAINER_FIELDS and isinstance(value, dict) and isinstance(value.get("image"), str):
                yield value["image"]
            yield from _images(value, key if key in CONTAINER_FIELDS else "")


def _mounted(volumes: list[Any]) -> Iterator[str]:
    """Yield the images that are mounted as volumes (`volumes[].image.reference`)."""
    for volume in volumes:
        image = volume.get("image") if isinstance(volume, dict) else None
        if isinstance(image, dict) and isinstance(image.get("reference"), str):
            yield image["reference"]
