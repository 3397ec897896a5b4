"""The repositories on the Hub, buckets and artifacts that a spec names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from kaigen.core.json_types import FieldPath
from kaigen.kinds.block import Block, derive_fields, document_name
from kaigen.kinds.blocks import HubRepository
from kaigen.kinds.serving import PulledModel
from kaigen.kinds.sources import S3, Oci

Repository: TypeAlias = HubRepository | PulledModel
MovingSource: TypeAlias = HubRepository | PulledModel | S3 | Oci
"""What the lock has an entry for."""
T = TypeVar("T")


def blocks_in(node: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Block]]:
    """Yield a block and all blocks in it, each with its path."""
    if isinstance(node, Block):
        yield path, node
        for name in node.__struct_fields__:
            yield from blocks_in(getattr(node, name), (*path, document_name(node, name)))
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from blocks_in(value, (*path, key))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from blocks_in(value, (*path, index))


def sources(block: Any) -> Iterator[tuple[FieldPath, MovingSource]]:
    """Yield the sources of a spec whose content can change, each with the path of its block."""
    for path, each in blocks_in(block):
        if isinstance(each, HubRepository | PulledModel | S3 | Oci):
            yield path, each


def with_blocks(node: T, change: Callable[[Block], Block]) -> T:
    """Return a block with each block in it changed, the inner ones first; the block itself if nothing changes."""
    value: Any = node
    if isinstance(value, Block):
        inner = {name: with_blocks(getattr(value, name), change) for name in value.__struct_fields__}
        new = {name: item for name, item in inner.items() if item is not getattr(value, name)}
        value = change(derive_fields(value, **new) if new else value)
    elif isinstance(value, dict):
        items = {key: with_blocks(item, change) for key, item in value.items()}
        value = items if any(items[key] is not item for key, item in value.items()) else value
    elif isinstance(value, list):
        listed = [with_blocks(item, change) for item in value]
        value = listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
    found: T = value
    return found
