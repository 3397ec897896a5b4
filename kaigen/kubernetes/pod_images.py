"""The images that the pods of objects need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

_CONTAINERS = frozenset({"containers", "initContainers", "ephemeralContainers"})


def images_of(objects: Iterable[Any]) -> list[str]:
    """Return every image that pods of these objects run or mount, sorted, without duplicates.

    Pod templates are found at any depth, so also in custom resources (LeaderWorkerSet, RayCluster).
    """
    return sorted({image for item in objects for image in image_fields(item)})


def image_fields(item: Any) -> list[str]:
    """Return the image of every container and image volume of an object, in the order of its fields."""
    return list(_images(item))


def _images(node: Any, key: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "volumes" and isinstance(value, list):
                yield from _mounted(value)
            yield from _images(value, name)
    elif isinstance(node, list):
        for value in node:
            if key in _CONTAINERS and isinstance(value, dict) and isinstance(value.get("image"), str):
                yield value["image"]
            yield from _images(value)


def _mounted(volumes: list[Any]) -> Iterator[str]:
    """Yield the images that are mounted as volumes (`volumes[].image.reference`)."""
    for volume in volumes:
        image = volume.get("image") if isinstance(volume, dict) else None
        if isinstance(image, dict) and isinstance(image.get("reference"), str):
            yield image["reference"]
