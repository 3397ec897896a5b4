"""A spec with the document that it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.problem import dotted_path
from kaigen.kinds.compat import Naming, ServingNaming
from kaigen.kinds.entry import OWN_SYSTEM
from kaigen.kinds.positioned import SourceField, find_source
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.kinds.base import AppBlock
    from kaigen.kinds.kind import CompiledKind, Kind
    from kaigen.kinds.positioned import Positioned


with lazy_imports():
    from kaigen.kinds import document_hints


class Spec(Struct, frozen=True):
    """A spec of a kind that kaigen compiles, written by a person or lowered from a dialect.

    Attributes:
        block: the spec as its kind's model.
        entry: the kind that the document is written in.
        target: the kind that compiles the block: `entry` unless the document is of a dialect.
        document: the document.
        source: its file, relative to the repository.
        origins: for a lowered spec, and for a further spec of a document, the field of the document that each of its
            fields came from; the longest prefix of a path decides. None for a document that is the spec itself.
        naming: names of a foreign system to keep; None for kaigen's own.
        matched: overrides of kaigen.yaml, by index, and pins, by name, that changed the document.
        hints: for a lowered spec, by diagnostic code, hints that name fields of the document in place of fields of
            the spec.
        sources: for a lowered spec, its fields that were written in other documents.
        urls: fields of the document with URLs that are in no field of the spec, and these.
        commit: the commit that the document was read from; empty for the working tree.
    """

    block: AppBlock
    entry: Kind
    target: CompiledKind
    document: Positioned
    source: str
    origins: Mapping[FieldPath, FieldPath] | None = None
    naming: Naming | ServingNaming | None = None
    matched: tuple[int | str, ...] = ()
    hints: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[FieldPath, SourceField] = field(default_factory=dict)
    urls: tuple[tuple[str, FieldPath], ...] = ()
    commit: str = ""

    @property
    def lowered(self) -> bool:
        """Whether the document is of a dialect."""
        return self.origins is not None and self.entry.system != OWN_SYSTEM

    def document_path(self, path: Sequence[str | int]) -> FieldPath:
        """Return the field of the document that a field of the spec came from."""
        field_path = tuple(path)
        if self.origins is None:
            return field_path
        for length in range(len(field_path), 0, -1):
            origin = self.origins.get(field_path[:length])
            if origin is not None:
                return origin
        return ("metadata", "name") if field_path[:1] == ("metadata",) else ("spec",)

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
        """Return a problem at a field of the spec, or at the field's key, with the position where it was written."""
        severity = Severity.WARNING if warning else Severity.ERROR
        hint = self.hints.get(code) or self._own_hint(hint)
        source = self.sources and find_source(path, self.sources, self.origins or {})
        if source:
            return Diagnostic(code, message, source.mark, hint, severity, source.path)
        origin = self.document_path(path)
        return self.document_diagnostic(code, message, origin, hint, severity, key=key)

    def _own_hint(self, hint: str) -> str:
        """Return a hint about the document: that of a dialect does not have the fields of the spec."""
        if not (hint and self.lowered and self.origins is not None):
            return hint
        return document_hints.hint_for_document(hint, self.target, self.entry, self.origins)

    def document_diagnostic(
        self,
        code: str,
        message: str,
        origin: FieldPath,
        hint: str = "",
        severity: Severity = Severity.ERROR,
        *,
        key: bool = False,
    ) -> Diagnostic:
        """Return a problem at a field of the document, or at its key, with the position where it was written."""
        mark: Mark = self.document.mark(origin, key=key)
        return Diagnostic(code, message, mark, hint, severity, dotted_path(origin))
