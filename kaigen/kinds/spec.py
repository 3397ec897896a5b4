"""A spec on its way through the compiler: what was asked for, and where each part of it was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.field_path import dotted
from kaigen.kinds.compat import Naming, ServingNaming

if TYPE_CHECKING:
    from kaigen.kinds.job import Job
    from kaigen.kinds.model import Model
    from kaigen.kinds.registry import KindEntry
    from kaigen.kinds.topology import Topology
    from kaigen.kinds.user import UserDocument
    from kaigen.kinds.validate import Positioned

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Spec:
    """One of kaigen's own kinds or of a user's, written by a person or lowered from a dialect.

    Attributes:
        block: the validated kind.
        entry: the kind that the document was written in.
        document: the document.
        source: its file, relative to the repository.
        origins: for a lowered spec, which field of the document each of its fields came from; the longest
            prefix of a path decides.
        naming: names of a foreign system to keep; None for kaigen's own.
        matched: which overrides of kaigen.yaml, by index, and pins, by name, changed the document.
        hints: for a lowered spec, by code what helps in words of its document, in place of a hint that names fields
            of kaigen's own kind.
    """

    block: Model | Job | Topology | UserDocument
    entry: KindEntry
    document: Positioned
    source: str
    origins: Mapping[Path, Path] = field(default_factory=dict)
    naming: Naming | ServingNaming | None = None
    matched: tuple[int | str, ...] = ()
    hints: Mapping[str, str] = field(default_factory=dict)

    def document_path(self, path: Sequence[str | int]) -> Path:
        """The document's field that a field of the kind came from."""
        wanted = tuple(path)
        if not self.entry.lower:
            return wanted
        for length in range(len(wanted), 0, -1):
            origin = self.origins.get(wanted[:length])
            if origin is not None:
                return origin
        return ("metadata", "name") if wanted[:1] == ("metadata",) else ("spec",)

    def diagnostic(
        self,
        code: str,
        message: str,
        path: Sequence[str | int],
        hint: str = "",
        *,
        warning: bool = False,
        key: bool = False,
    ) -> Diagnostic:
        """A problem at a field of the kind, or at the field's name, told at its place in the document."""
        where = self.document_path(path)
        mark: Mark = self.document.mark(where, key=key)
        severity = Severity.WARNING if warning else Severity.ERROR
        return Diagnostic(code, message, mark, self.hints.get(code, hint), severity, dotted(where))
