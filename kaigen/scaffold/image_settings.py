"""The block `images` of kaigen.yaml, written into the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kaigen.config.images import Images
from kaigen.core.json_types import JsonObject
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.errors import SystemFailure
from kaigen.images.build import Built
from kaigen.kinds.block import document_names
from kaigen.scaffold.changes import FileChange, mark_of, read_text
from kaigen.yaml.document import Document, parse
from kaigen.yaml.edit import Edit, edit_text
from kaigen.yaml.sources import Source


def settings_of(built: list[Built]) -> dict[str, str]:
    """Return the fields of `images` in kaigen.yaml for images that were built; some images have none."""
    fields = document_names(Images)
    return {item.name: item.reference for item in built if item.name in fields}


def with_images(path: Path, images: Mapping[str, str]) -> FileChange:
    """Return kaigen.yaml with other images; comments and everything else stay.

    Args:
        path: the file, which may not exist.
        images: references by the names of fields of `images`.

    Raises:
        InputError: the file is not valid YAML.
        SystemFailure: it cannot be read, or cannot be changed without changing something else.
    """
    old = read_text(path)
    text = (old or "").removeprefix("\ufeff")
    if "images" not in _data(_document(path, text)):
        lines = "".join(f"  {name}: {reference}\n" for name, reference in images.items())
        ended = f"{text.rstrip()}\n" if text.strip() else ""
        text = f"{ended}images:\n{lines}"
    else:
        for name, reference in images.items():
            text = _with_image(path, text, name, reference)
    mark = mark_of(path) if old is not None else ""
    return FileChange(path, old, mark + text)


def _with_image(path: Path, text: str, name: str, reference: str) -> str:
    document = _document(path, text)
    fields = _data(document)["images"]
    new = None
    if document is not None and isinstance(fields, dict) and fields:
        after = name if name in fields else list(fields)[-1]
        new = edit_text(Source(str(path), text), [Edit(document, ("images", name), reference, after)])
    if new is None:
        raise SystemFailure(
            f"cannot write `images` into {path} without changing something else",
            hint="write the printed block into the file by hand",
        )
    return new


def _data(document: Document | None) -> JsonObject:
    return document.data if document is not None and isinstance(document.data, dict) else {}


def _document(path: Path, text: str) -> Document | None:
    found = Diagnostics()
    documents = parse(Source(str(path), text), found)
    found.raise_errors()
    return documents[0] if documents else None
