"""The block `external` of kaigen.yaml."""

from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta

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

    def is_named(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether it is the object of a name; an object without a namespace may be in any."""
        return (
            kind == self.kind
            and (not self.namespace or not namespace or namespace == self.namespace)
            and fnmatchcase(name, self.name)
        )
