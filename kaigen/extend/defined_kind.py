"""A kind that a folder defines, as it was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from kaigen.diagnostics.diagnostic import Mark
    from kaigen.yaml.sources import Source

SUFFIX = ".yaml.jinja"
"""Suffix of templates that make objects; other `.jinja` files are for inclusion."""


class Definition(Struct, frozen=True):
    """A kind that a folder defines.

    Attributes:
        folder: as messages show it.
        api_version: of its documents.
        kind: of its documents.
        summary: its purpose.
        pod_security: the level that its pods must satisfy.
        schema: JSON Schema of `spec`.
        templates: source by name, the path below `templates/`.
        mark: of the name that it defines.
        signature: digest of all of its files.
    """

    folder: str
    api_version: str
    kind: str
    summary: str
    pod_security: str
    schema: Mapping[str, Any]
    templates: Mapping[str, Source]
    mark: Mark
    signature: str

    def __hash__(self) -> int:
        return hash(self.signature)

    def objects(self) -> list[str]:
        """Return the names of the templates that make objects, in order."""
        return [name for name in self.templates if name.endswith(SUFFIX)]
