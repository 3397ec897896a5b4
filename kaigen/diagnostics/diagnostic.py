"""Diagnostics: problems with their place in a file.

A diagnostic states the problem and how to fix it. It is created where the problem is found, and printed by the
command line (`kaigen.diagnostics.report`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.diagnostics.category import Category

with lazy_imports():
    from kaigen.diagnostics import codes


class Severity(IntEnum):
    """Severity of a problem. Only errors stop a command."""

    NOTE = 0
    WARNING = 1
    ERROR = 2

    @property
    def label(self) -> str:
        """The word that reporters print: `error`, `warning` or `note`."""
        return self.name.lower()


class Mark(Struct, frozen=True):
    """A place in a source file.

    Attributes:
        file: path as the user would type it, or `<stdin>`.
        line: 1-based; 0 when only the file is known.
        column: 1-based, in characters; 0 when only the line is known.
        length: how many characters are meant, on that line.
        text: that line without its line end, for the caret; empty when unknown.
    """

    file: str
    line: int = 0
    column: int = 0
    length: int = 1
    text: str = ""

    def __str__(self) -> str:
        parts = [self.file]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


class Diagnostic(Struct, frozen=True):
    """One problem.

    Attributes:
        code: stable identifier, `KG` and four digits, listed in `kaigen.diagnostics.codes`.
        message: what is wrong, one sentence without a full stop.
        mark: its place; None for a problem outside of files.
        hint: how to fix it, one sentence without a full stop; may be empty.
        severity: error by default.
        path: the field in the document, as in `spec.store.volume.size`; empty for a whole document.
    """

    code: str
    message: str
    mark: Mark | None = None
    hint: str = ""
    severity: Severity = Severity.ERROR
    path: str = ""

    @property
    def category(self) -> Category:
        """The kind of problem; decide by this, never by the code."""
        # Only a problem needs the table of codes.
        return codes.category_of(self.code)

    def as_warning(self) -> Diagnostic:
        """Return the same problem as a warning."""
        return replace(self, severity=Severity.WARNING)

    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Return the sort key: by file and place."""
        mark = self.mark or Mark("")
        return (mark.file, mark.line, mark.column, self.code, self.message)
