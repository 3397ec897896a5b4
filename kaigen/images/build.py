"""Build kaigen's own images, and push them to a registry with what they are made of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kaigen import __version__
from kaigen.diagnostics.errors import KaigenError
from kaigen.git.repository import head_commit, is_dirty
from kaigen.images.attest import attach_facts
from kaigen.images.builders import Build, Builder
from kaigen.images.recipes import TORCH, Recipe
from kaigen.kubernetes.images import parse_image
from kaigen.oci.reference import Reference
from kaigen.oci.registry import Registry

_TITLES = "org.opencontainers.image"
_SOURCE = "https://github.com/kaigen-dev/kaigen"


class Order(Struct, frozen=True):
    """How images are built and named.

    Attributes:
        registry: registry and prefix of the names, such as `registry.example.com/kaigen`; empty for local names.
        tag: their tag.
        base: the image of Python that they start from; empty for that of the Dockerfiles.
        torch: the image of PyTorch that they start from; empty for the one that is built with them.
        platforms: such as `linux/arm64`; empty for that of this machine.
        secrets: files that the builds may read, by id: `pip.conf` and `ca.crt`.
        notebook_torch: whether the notebook's image has PyTorch.
        plain_http: connect to the registry without TLS.
        torch_lock: lock of another build of PyTorch for its image; None for that of `runtimes`.
    """

    registry: str
    tag: str = __version__
    base: str = ""
    torch: str = ""
    platforms: tuple[str, ...] = ()
    secrets: Mapping[str, Path] = {}
    notebook_torch: bool = False
    plain_http: bool = False
    torch_lock: Path | None = None

    def name(self, image: str) -> str:
        """Return the reference of an image."""
        return f"{self.registry}/{image}:{self.tag}" if self.registry else f"kaigen-{image}:{self.tag}"

    def is_plain(self, image: str) -> bool:
        """Return whether an image is pulled without TLS: from this machine, or from a registry that is asked so."""
        host = parse_image(image).registry
        plain = self.plain_http and host == self.registry.partition("/")[0]
        return plain or Reference(host, image).is_loopback


class Built(Struct, frozen=True):
    """An image that was built.

    Attributes:
        name: the image.
        reference: its name with the tag, and with the digest if it is in a registry.
        seconds: how long it took, the push included.
        bytes: compressed size of its layers in the registry; None if it was not pushed.
    """

    name: str
    reference: str
    seconds: float
    bytes: int | None


def build_images(recipes: Sequence[Recipe], order: Order, builder: Builder, *, push: bool) -> Iterator[Built]:
    """Build images one after another, and yield each one when it is there.

    Args:
        recipes: the images, each after the one that it starts from.
        order: how they are named.
        builder: builds them.
        push: push them to the registry.

    Raises:
        SystemFailure: a build or a push failed.
    """
    pushed: dict[str, str] = {}
    for recipe in recipes:
        started = time.monotonic()
        build = _plan(recipe, order, pushed)
        digest = builder.build(build, push=push)
        pushed[recipe.name] = f"{build.reference}@{digest}" if digest else build.reference
        size = _attach(recipe, order, build, digest) if digest else None
        yield Built(recipe.name, pushed[recipe.name], time.monotonic() - started, size)


def _plan(recipe: Recipe, order: Order, built: Mapping[str, str]) -> Build:
    """Return how an image is built.

    Args:
        recipe: what it is built from.
        order: how images are named.
        built: references of the images that are there.
    """
    with_torch = recipe.name == "notebook" and order.notebook_torch
    base = (order.torch or order.name(TORCH)) if recipe.base or with_torch else order.base
    arguments = {**({"BASE": base} if base else {}), **({"EXTRA": "torch"} if with_torch else {})}
    other_torch = {"torch.txt": order.torch_lock} if recipe.name == TORCH and order.torch_lock else {}
    commit = _commit(recipe.context)
    labels = {
        f"{_TITLES}.title": f"kaigen-{recipe.name}",
        f"{_TITLES}.version": order.tag,
        f"{_TITLES}.source": _SOURCE,
        f"{_TITLES}.licenses": "Apache-2.0",
        **({f"{_TITLES}.revision": commit} if commit else {}),
        **({f"{_TITLES}.base.name": base} if base else {}),
    }
    return Build(
        reference=order.name(recipe.name),
        context=recipe.context,
        dockerfile=recipe.dockerfile,
        arguments=arguments,
        labels=labels,
        secrets={**order.secrets, **other_torch},
        platforms=order.platforms,
        plain_base=order.is_plain(base),
    )


def _commit(context: Path) -> str:
    """Return the commit of a clone without changes; empty for an installed kaigen, or with changes."""
    try:
        return "" if is_dirty(context) else head_commit(context)
    except KaigenError:
        return ""


def _attach(recipe: Recipe, order: Order, build: Build, digest: str) -> int:
    host, _, repository = build.reference.rpartition(":")[0].partition("/")
    registry = Registry(Reference(host, repository, order.tag), plain_http=order.plain_http)
    own = build.secrets.get("torch.txt")
    locks = (own,) if own else tuple(recipe.context / lock for lock in recipe.locks)
    inputs = {name.removeprefix(f"{_TITLES}."): value for name, value in build.labels.items()}
    return attach_facts(registry, recipe, locks, digest, order.tag, inputs)
