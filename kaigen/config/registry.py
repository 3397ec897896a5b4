"""The fields `registry` and `builds` of kaigen.yaml: where images are pulled from and pushed to."""

from typing import Annotated

from msgspec import Meta, field

from kaigen.kinds.base import check_text, listable_text, text
from kaigen.kinds.block import Block

_REGISTRY = r"^[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._/-]+[a-z0-9]+)*)?$"

REGISTRY = r"^[a-z0-9][a-z0-9.:/_-]*[a-z0-9]$"
_PREFIX = r"^[a-z0-9][a-z0-9.:/_-]*$"
_MIRROR = r"^[a-z0-9]([a-z0-9.:/_-]|\{host\})*([a-z0-9]|\{host\})$"


class Rule(Block):
    """Where images with a prefix are pulled from."""

    from_: Annotated[
        str,
        text(
            _PREFIX,
            max_length=253,
            description="Start of the image's name: a registry, or a part of a name before a slash.",
            examples=["docker.io/vllm", "quay.io"],
        ),
    ] = field(name="from")
    to: Annotated[
        str,
        text(
            _PREFIX, max_length=253, description="What replaces it.", examples=["registry.example.com/dockerhub/vllm"]
        ),
    ]


class RegistryBlock(Block):
    """A mirror for all images."""

    mirror: Annotated[
        Annotated[str, text(_MIRROR, max_length=253)] | None,
        Meta(
            description="What replaces the registry in the name of every image; `{host}` is the registry. A "
            "registry with a port needs an entry in `rules` then.",
            examples=["registry.example.com", "registry.example.com/{host}"],
        ),
    ] = None
    rules: Annotated[
        list[Rule], Meta(description="Other replacements by the start of the name; the longest match applies.")
    ] = field(default_factory=list)


RegistryText = Annotated[str, listable_text(REGISTRY)]


def check_registry(value: object) -> None:
    """Check a registry that is a text.

    Raises:
        ValueError: it is not a registry.
    """
    check_text(REGISTRY, value)


class Builds(Block):
    """Images that are built in the cluster."""

    registry: Annotated[
        Annotated[str, text(_REGISTRY, max_length=200)] | None,
        Meta(
            description="Registry, with or without a path, of images whose `build` has no `repository`: they are "
            "pushed to `REGISTRY/NAME`, with the name of the spec.",
            examples=["registry.example.com/acme"],
        ),
    ] = None
