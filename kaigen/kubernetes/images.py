"""Images: the registry, repository, tag and digest in their names, and those that the pods of objects need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from kaigen.kubernetes.pods import CONTAINER_FIELDS, is_single_container

DEFAULT_REGISTRY = "docker.io"
_HOST = r"(?:[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])"
_REGISTRY = rf"(?:{_HOST}(?:\.{_HOST})+(?::[0-9]+)?|{_HOST}:[0-9]+|localhost|\[[0-9A-Fa-f:]+\](?::[0-9]+)?)"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:{_REGISTRY}/)?(?P<repository>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?"
    r"(?:@sha256:[0-9a-f]{64}|@sha512:[0-9a-f]{128})?"
)
"""The grammar of references (sources: https://github.com/distribution/reference/blob/v0.6.0/regexp.go,
https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pulling-manifests)."""

_LONGEST = 255
"""Characters of a repository's name (source: `NameTotalLengthMax` of distribution/reference)."""


class ImageName(Struct, frozen=True):
    """An image.

    Attributes:
        registry: host of the registry, with its port.
        repository: name in the registry; `library/busybox` for `busybox`.
        tag: empty for none.
        digest: with its algorithm; empty for none.
    """

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}{self.version}"

    @property
    def version(self) -> str:
        """The tag and the digest as at the end of a reference."""
        return (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def is_image(reference: str) -> bool:
    """Return whether a text is the reference of an image."""
    found = _REFERENCE.fullmatch(reference)
    return found is not None and len(found["repository"]) <= _LONGEST


def lower_case(reference: str) -> str:
    """Return a reference with its repository in small letters, such as that of an organisation on GitHub."""
    name, at, digest = reference.strip().partition("@")
    head, slash, last = name.rpartition("/")
    last, colon, tag = last.partition(":")
    return f"{head.lower()}{slash}{last.lower()}{colon}{tag}{at}{digest}"


def parse_image(reference: str) -> ImageName:
    """Return an image by its reference, with the registry that a short name means."""
    name, _, digest = reference.partition("@")
    tag = ""
    if ":" in name.rpartition("/")[2]:
        name, _, tag = name.rpartition(":")
    host, _, rest = name.partition("/")
    if rest and ("." in host or ":" in host or host == "localhost"):
        registry, repository = host, rest
        if registry in ("docker.io", "index.docker.io"):
            registry = DEFAULT_REGISTRY
            repository = repository if "/" in repository else f"library/{repository}"
    else:
        registry, repository = DEFAULT_REGISTRY, name if rest else f"library/{name}"
    return ImageName(registry, repository, tag, digest)


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
