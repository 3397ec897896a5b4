"""What a run reads: paths, and specs as Python objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import to_builtins

from kaigen.system.lazy_import import lazy_imports
from kaigen.yaml.sources import STDIN, Source

if TYPE_CHECKING:
    from kaigen.kinds.block import Block

with lazy_imports():
    from kaigen.kinds import block as kinds_block
    from kaigen.yaml import dump as yaml_dump

Input: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Block"
"""A file or folder, or a spec: an object of a kind such as `Model`, or a dict with the same content as in YAML."""

Inputs: TypeAlias = "Input | Sequence[Input]"
"""One input or several; none for the specs that are configured."""

_DOCUMENT = ("api_version", "kind")


def list_inputs(inputs: Inputs) -> list[Input]:
    """Return inputs as a list."""
    # Kinds are not imported for paths: start-up is import time.
    if isinstance(inputs, str | os.PathLike | Mapping):
        return [inputs]
    if isinstance(inputs, list | tuple):
        return list(inputs)
    return [inputs] if isinstance(inputs, kinds_block.Block) else list(inputs)


def paths_of(inputs: Iterable[Input], folder: Path) -> list[str]:
    """Return the paths among inputs.

    Args:
        inputs: paths and specs.
        folder: that relative paths start from.
    """
    paths = [os.fspath(item) for item in inputs if isinstance(item, str | os.PathLike)]
    if folder == Path():
        return paths
    return [path if path in ("", "-") or os.path.isabs(path) else str(folder / path) for path in paths]


def object_sources(inputs: Iterable[Input]) -> list[Source]:
    """Return the specs among inputs as YAML, so that messages can show a line of it."""
    sources: dict[str, Source] = {}
    for item in inputs:
        if isinstance(item, str | os.PathLike):
            continue
        data = plain(item)
        metadata = data.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        title = f"{data.get('kind', 'spec')} {name}".strip()
        path = f"<{title}>"
        while path in sources or path == STDIN:
            path = f"<{title} {len(sources) + 1}>"
        sources[path] = Source(path, yaml_dump.dump(data))
    return list(sources.values())


def plain(value: Any) -> Any:
    """Return a spec, or a part of it, as plain data with the names of a document.

    Raises:
        TypeError: a value cannot be written to YAML.
    """
    if isinstance(value, kinds_block.Block):
        names = kinds_block.set_fields(value)
        if set(_DOCUMENT) <= set(value.__struct_fields__):
            names |= set(_DOCUMENT)
        return {
            kinds_block.document_name(value, name): plain(getattr(value, name))
            for name in value.__struct_fields__
            if name in names
        }
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return to_builtins(value)
