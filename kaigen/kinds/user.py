"""A document of a user-defined kind, whose `spec` is checked by the schema of the kind."""

from typing import Annotated

from msgspec import Meta

from kaigen.core.json_types import Json
from kaigen.kinds.base import Metadata
from kaigen.kinds.block import Block


class UserDocument(Block):
    """A document of a user-defined kind."""

    api_version: Annotated[str, Meta(description="Version of the kind.")]
    kind: Annotated[str, Meta(description="Kind of the document.")]
    metadata: Annotated[Metadata, Meta(description="Name, namespace, labels and annotations of the app.")]
    spec: Annotated[dict[str, Json], Meta(description="Fields of the kind, by its own schema.")]
