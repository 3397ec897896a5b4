"""The revisions and images of specs, and which of them can change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.field_path import dotted
from kaigen.dialects.registry import find_kind
from kaigen.kinds.block import Block
from kaigen.kinds.promotable import Found, promotable_values
from kaigen.kinds.validate import validate_document
from kaigen.kubernetes.image_names import ImageName, is_image, parse_image
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source

COMMIT = re.compile("[0-9a-f]{40}")
_NOTE = re.compile(r"[ \t]+#[ \t]*(?P<name>[A-Za-z0-9][A-Za-z0-9._/-]*)(?=[ \t]*(?:;|\r?$))")
"""The comment after a commit with the name that it was resolved from, alone or before a `;`."""


class Name(Struct, frozen=True):
    """A revision or an image of a spec.

    Attributes:
        document: the spec.
        path: the field; of a missing revision, the field that it would be.
        value: the value; empty for a missing revision.
        moving: what can change: a branch or tag, or the image without its digest; empty for a commit without a name.
        pinned: the commit or digest that is there; empty without one.
        image: the image; None for a revision.
        repo: repository on the Hub; empty for an image.
        endpoint: URL of the Hub; empty for the default.
        git: URL of a Git repository; empty for others.
    """

    document: Document
    path: tuple[str | int, ...]
    value: str
    moving: str
    pinned: str
    image: ImageName | None = None
    repo: str = ""
    endpoint: str = ""
    git: str = ""

    @property
    def app(self) -> str:
        """The name of the spec."""
        return self.document.name or ""

    @property
    def field(self) -> str:
        """Dotted name of the field."""
        return dotted(self.path)

    @property
    def mark(self) -> Mark:
        """Where it is."""
        return self.document.mark(self.path)


def names_in(source: Source, problems: Diagnostics) -> Iterator[Name]:
    """Yield the revisions and images of the specs in a text.

    Args:
        source: the text.
        problems: receives what is wrong with it.
    """
    for document in parse(source, problems):
        entry = find_kind(document.apiVersion, document.kind)
        if entry is None:
            continue
        block, diagnostics = validate_document(document, entry)
        problems.extend(diagnostics)
        if block is not None:
            yield from _names(document, block)


def _names(document: Document, block: Block) -> Iterator[Name]:
    for found in promotable_values(block):
        if found.marker.needs == "digest":
            if is_image(found.value) and document.span(found.path) is not None:
                image = parse_image(found.value)
                moving = found.value.partition("@")[0]
                yield Name(document, found.path, found.value, moving, image.digest, image)
        elif found.marker.needs == "commit":
            name = _revision(document, found)
            if name is not None:
                yield name


def _revision(document: Document, found: Found) -> Name | None:
    siblings = _at(document.data, found.path[:-1])
    repo, endpoint, git = (_text(siblings, name) for name in ("repo", "endpoint", "url"))
    if not repo and not git:
        return None
    span = document.span(found.path)
    value = found.value if span is not None else ""
    pinned = value if COMMIT.fullmatch(value) else ""
    moving = found.value
    if pinned and span is not None:
        note = _NOTE.match(document.source.text, span[1])
        moving = note["name"] if note and not COMMIT.fullmatch(note["name"]) else ""
    return Name(document, found.path, value, moving, pinned, None, repo, endpoint, git)


def _text(siblings: Mapping[str, Any], name: str) -> str:
    value = siblings.get(name)
    return value if isinstance(value, str) else ""


def _at(data: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
    for step in path:
        data = data[step]
    return data if isinstance(data, Mapping) else {}
