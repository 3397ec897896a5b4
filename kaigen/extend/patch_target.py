"""A patch and the objects that it targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.compile.app import Object
from kaigen.config.block_settings import ObjectPatch
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Mark

if TYPE_CHECKING:
    from kaigen.yaml.document import Document


class PatchMarks(Struct, frozen=True):
    """Returns the mark of a path in a patch or its target.

    Attributes:
        document: reads the document that contains the patch; None where it can no longer be read.
        start: path of the patch in that document.
        file: name of the document's file.
    """

    document: Callable[[], Document | None]
    start: FieldPath
    file: str

    def __call__(self, path: FieldPath = (), *, key: bool = False) -> Mark:
        """Return the mark of a value, or of its key; only the file where the document can no longer be read."""
        document = self.document()
        return document.mark((*self.start, *path), key=key) if document else Mark(self.file)


class Patch(Struct, frozen=True):
    """One patch.

    Attributes:
        index: its number in the configuration.
        target: the entry of kaigen.yaml, which names the objects.
        content: a list of operations, or a mapping to merge.
        marks: marks in the patch.
        target_marks: marks in its target.
        encoded: the content for the process of patches.
    """

    index: int
    target: ObjectPatch
    content: Sequence[Mapping[str, Any]] | Mapping[str, Any]
    marks: PatchMarks
    target_marks: PatchMarks
    encoded: bytes

    @property
    def token(self) -> str:
        """A text that identifies the patch in the records of what matched."""
        return f"patch:{self.index}"

    @property
    def has_wildcard(self) -> bool:
        """Whether the target's app is a pattern, not a name."""
        return "*" in self.target.app or "?" in self.target.app

    def matches_app(self, namespace: str, name: str) -> bool:
        """Return whether the patch targets an app."""
        pattern = self.target.app
        return fnmatchcase(f"{namespace}/{name}" if "/" in pattern else name, pattern)

    def matches_object(self, item: Object, name: str) -> bool:
        """Return whether the patch targets an object of an app that it matches."""
        pattern = self.target.name
        if item.test and not (pattern or "").startswith("tests/"):
            return False
        if self.target.kind not in (None, item.kind):
            return False
        return pattern is None or fnmatchcase(name, pattern) or fnmatchcase(item.role, pattern)
