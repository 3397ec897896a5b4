"""A document of a user-defined kind, whose `spec` is checked by the schema of the kind."""

from __future__ import annotations

from pydantic import Field, JsonValue

from kaigen.kinds.base import Block, Metadata


class UserDocument(Block):
    """A document of a user-defined kind."""

    api_version: str = Field(description="Version of the kind.")
    kind: str = Field(description="Kind of the document.")
    metadata: Metadata = Field(description="Name, namespace, labels and annotations of the app.")
    spec: dict[str, JsonValue] = Field(description="Fields of the kind, by its own schema.")
