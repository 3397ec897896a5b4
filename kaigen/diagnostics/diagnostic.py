"""Diagnostics: problems with their place in a file, and the exceptions that carry them.

A diagnostic states the problem and how to fix it. It is created where the problem is found, and printed by the
command line (`kaigen.diagnostics.report`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


class Diagnostics:
    """A growing list of problems, so that one run reports all of them."""

    def __init__(self, items: Iterable[Diagnostic] = ()) -> None:
        self._items: list[Diagnostic] = list(items)

    def add(self, item: Diagnostic) -> None:
        """Add a problem."""
        self._items.append(item)

    def extend(self, items: Iterable[Diagnostic]) -> None:
        """Add problems."""
        self._items.extend(items)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.sorted())

    def __len__(self) -> int:
        return len(self._items)

    def sorted(self) -> list[Diagnostic]:
        """Return all problems by file and place, each once."""
        return sorted(dict.fromkeys(self._items), key=Diagnostic.sort_key)

    @property
    def has_errors(self) -> bool:
        """Whether at least one is an error."""
        return any(d.severity is Severity.ERROR for d in self._items)

    def raise_errors(self) -> None:
        """Raise `InputError` with all problems if at least one is an error."""
        if self.has_errors:
            raise InputError(self.sorted())


class KaigenError(Exception):
    """Root of everything a user may see without a traceback.

    Attributes:
        exit_code: exit code of the command line.
        hint: how to fix it; may be empty.
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class InputError(KaigenError):
    """The input is invalid: specs, `kaigen.yaml`, or the command line. Exit code 2."""

    exit_code = 2

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        errors = [d for d in self.diagnostics if d.severity is Severity.ERROR]
        first = errors[0] if errors else None
        super().__init__(
            f"{first.mark}: {first.message}" if first and first.mark else (first.message if first else "")
        )

    @classmethod
    def of(
        cls, code: str, message: str, *, mark: Mark | None = None, hint: str = "", path: str = ""
    ) -> InputError:
        """Return an error with a single diagnostic."""
        return cls([Diagnostic(code, message, mark, hint, path=path)])


class CheckFailed(KaigenError):
    """A check failed, such as `render --check` on a stale tree. Exit code 1."""

    exit_code = 1


class SystemFailure(KaigenError):
    """The environment failed: cluster, network, registry, disk, or a missing program. Exit code 3."""

    exit_code = 3
