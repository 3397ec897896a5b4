"""Source positions of overrides and pins; their files are read again only when a position is needed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.field_path import dotted_path
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


def document_of(file: Path) -> Document | None:
    """Return the first document of a file; None if it cannot be read."""
    try:
        return _parsed(str(file), file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=8)
def _parsed(path: str, text: str) -> Document | None:
    return next(iter(parse(Source(path, text), Diagnostics())), None)
