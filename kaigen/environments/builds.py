"""The default repositories of images that specs build."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kaigen.kinds.block import Block, derive_fields
from kaigen.kinds.build import Build
from kaigen.kinds.repositories import with_blocks

if TYPE_CHECKING:
    from kaigen.config.settings import Config

T = TypeVar("T")


def with_repositories(block: T, name: str, config: Config) -> T:
    """Return a spec whose builds have a repository, if kaigen.yaml names the registry.

    Args:
        block: the spec.
        name: its name.
        config: the settings of the run.
    """
    if not config.build_registry:
        return block
    repository = default_repository(name, config)

    def change(each: Block) -> Block:
        needs_one = isinstance(each, Build) and each.repository is None
        return derive_fields(each, repository=repository) if needs_one else each

    return with_blocks(block, change)


def default_repository(name: str, config: Config) -> str:
    """Return the repository of the image of a spec that names none; empty without a registry in kaigen.yaml."""
    return f"{config.build_registry}/{name}" if config.build_registry else ""
