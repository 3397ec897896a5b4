"""JSON merge patches (RFC 7396) of documents, with the source position of every value, and entries of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from kaigen.config.settings import FILE_NAME, Config, Override
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.problem import dotted_path
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source


class FileEntry(Struct, frozen=True):
    """An entry of a file, with its source position.

    Attributes:
        file: the file.
        at: the entry's path in it.
        flat: whether its fields have dotted names, as in a pins file.
    """

    file: Path
    at: FieldPath
    flat: bool = False

    def mark(self, path: FieldPath = (), *, key: bool = False) -> Mark:
        """Return the place of a path in the entry, or of the key at its end; only the file if it has changed."""
        document = document_of(self.file)
        if document is None:
            return Mark(str(self.file))
        return document.mark(self._path(document, path), key=key)

    def raw(self, path: FieldPath) -> str | None:
        """Return a scalar as it was written."""
        document = document_of(self.file)
        return document.raw(self._path(document, path)) if document else None

    def _path(self, document: Document, path: FieldPath) -> FieldPath:
        if not self.flat:
            return (*self.at, *path)
        entry: Any = document.data
        for step in self.at:
            entry = entry.get(step, {}) if isinstance(entry, dict) else {}
        for length in range(len(path), 0, -1):
            if dotted_path(path[:length]) in entry:
                return (*self.at, dotted_path(path[:length]))
        return self.at


def place_of(override: Override, config: Config) -> FileEntry:
    """Return the entry of an override in its file."""
    return FileEntry(config.root / (override.file or FILE_NAME), override.at)


def document_of(file: Path) -> Document | None:
    """Return the first document of a file; None if it cannot be read."""
    try:
        return _parsed(str(file), file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=8)
def _parsed(path: str, text: str) -> Document | None:
    return next(iter(parse(Source(path, text), Diagnostics())), None)


class Entries(dict[int, Any]):
    """Patches of single list entries, which a merge patch cannot address. Only pins use them."""


def merge(target: Any, patch: Any) -> Any:
    """Return a value with a merge patch applied; neither is modified.

    Mappings are merged, null removes a member, any other value replaces the old one (RFC 7396, section 2).
    Entries beyond the end of the list are ignored.
    """
    if isinstance(patch, Entries):
        if not isinstance(target, list):
            return target
        return [merge(item, patch[index]) if index in patch else item for index, item in enumerate(target)]
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


class Layer(Struct, frozen=True):
    """One patch of a document.

    Attributes:
        patch: the patch of the whole document.
        place: source position of its values.
        environment: the environment that it belongs to; empty if all environments share it.
        pins: whether it contains promoted values.
    """

    patch: dict[str, Any]
    place: FileEntry
    environment: str = ""
    pins: bool = False

    def sets(self, path: Sequence[str | int]) -> bool:
        """Whether the patch replaces the value at a path instead of merging into it."""
        node, steps = reach(self.patch, path)
        return not isinstance(node, dict) if steps == len(path) else not isinstance(node, dict | None)


@dataclass(frozen=True, slots=True, eq=False)
class PatchedDocument:
    """A document with patches applied.

    Attributes:
        base: the document as it was written.
        layers: the patches, later ones on top.
        matched: indices of overrides and names of pins among the layers.
        expanded: patch of texts on top, whose place is that of the text that each replaces.
        data: the patched data.
    """

    base: Document
    layers: tuple[Layer, ...]
    matched: tuple[int | str, ...]
    expanded: dict[str, Any] = field(default_factory=dict)
    data: Any = field(init=False)
    _below: tuple[Any, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        states = [self.base.data]
        for layer in self.layers:
            states.append(merge(states[-1], layer.patch))
        object.__setattr__(self, "data", merge(states[-1], self.expanded))
        object.__setattr__(self, "_below", tuple(states))

    def layer(self, path: Sequence[str | int]) -> Layer | None:
        """Return the patch that set or removed the value at a path; None for the document itself."""
        for layer, below in zip(reversed(self.layers), reversed(self._below[:-1]), strict=True):
            node, steps = reach(layer.patch, path)
            if not isinstance(node, dict):
                return layer
            there, depth = reach(below, path[:steps])
            merged = list if isinstance(node, Entries) else dict
            if depth < steps or not isinstance(there, merged):
                return layer
        return None

    def mark(self, path: Sequence[str | int] = (), *, key: bool = False) -> Mark:
        """Return the place of a path, or of the key at its end: in the document or in the override."""
        layer = self.layer(path)
        return layer.place.mark(tuple(path), key=key) if layer else self.base.mark(path, key=key)

    def raw(self, path: Sequence[str | int]) -> str | None:
        """Return a scalar as it was written."""
        layer = self.layer(path)
        return layer.place.raw(tuple(path)) if layer else self.base.raw(path)

    def removed(self) -> Iterator[FieldPath]:
        """Yield the paths that a patch removes and no later patch restores."""
        for layer in self.layers:
            for path in _nulls(layer.patch, ()):
                _, steps = reach(self.data, path)
                if steps < len(path):
                    yield path


def reach(node: Any, path: Sequence[str | int]) -> tuple[Any, int]:
    """Return the value at the longest existing prefix of a path, and the length of that prefix."""
    for count, step in enumerate(path):
        here = step in node if isinstance(node, dict) else isinstance(node, list) and step in range(len(node))
        if not here:
            return node, count
        node = node[step]
    return node, len(path)


def _nulls(node: Any, path: FieldPath) -> Iterator[FieldPath]:
    if isinstance(node, dict):
        for key, value in node.items():
            if value is None:
                yield (*path, key)
            else:
                yield from _nulls(value, (*path, key))
