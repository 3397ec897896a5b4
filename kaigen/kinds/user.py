"""A document of a kind that a user defines: the frame is kaigen's, the `spec` is checked by the kind's own schema."""

from __future__ import annotations

from pydantic import Field, JsonValue

from kaigen.kinds.base import Block, Metadata


class UserDocument(Block):
    """A document of a user's kind."""

    api_version: str = Field(description="Version of the kind.")
    kind: str = Field(description="The kind.")
    metadata: Metadata = Field(description="Who the app is.")
    spec: dict[str, JsonValue] = Field(description="What the kind's own schema says.")
