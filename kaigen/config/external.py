"""The block `external` of kaigen.yaml."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from kaigen.config.block_settings import ExternalObject
from kaigen.kinds.base import NO_BLANKS, LabelName, text
from kaigen.kinds.block import Block


class ExternalEntry(Block):
    """An object that clusters have although no app makes it."""

    kind: Annotated[
        str, text(r"^[A-Z][A-Za-z0-9]*$", max_length=63, description="Its kind.", examples=["ServiceAccount"])
    ]
    name: Annotated[
        str,
        text(
            NO_BLANKS,
            min_length=1,
            max_length=253,
            description="Its name, with the wildcards `*` and `?`.",
            examples=["trainer", "datasets-*"],
        ),
    ]
    namespace: Annotated[LabelName | None, Meta(description="Its namespace. Default: any.")] = None


def external_objects(entries: Iterable[ExternalEntry]) -> tuple[ExternalObject, ...]:
    """Return the objects that the entries declare."""
    return tuple(ExternalObject(entry.kind, entry.name, entry.namespace or "") for entry in entries)
