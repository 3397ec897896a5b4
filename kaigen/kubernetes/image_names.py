"""Names of images: their registry, repository, tag and digest."""

from __future__ import annotations

import re

from msgspec import Struct

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
