"""A problem before its file is known, and the exception that carries one.

`Diagnostic` is a problem with its place in a file. Steps that work on plain data, such as compilers of kinds and
checks of objects, return or raise a `Problem`; the caller that knows the file turns it into a diagnostic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.core.text import some_of
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.errors import KaigenError
from kaigen.diagnostics.field_path import dotted_path
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.diagnostics.category import Category

with lazy_imports():
    from kaigen.diagnostics import codes


class Problem(Struct, frozen=True):
    """One problem of a document or an object.

    Attributes:
        code: stable identifier, `KG` and four digits, listed in `codes.yaml`.
        message: what is wrong, one sentence without a full stop; does not repeat the path.
        path: keys and indices from the root. The path of an unknown field ends in the field; the path of a missing
            field is that of the mapping that lacks it.
        hint: how to fix it, one sentence without a full stop; may be empty.
        severity: error unless given.
    """

    code: str
    message: str
    path: FieldPath = ()
    hint: str = ""
    severity: Severity = Severity.ERROR

    @property
    def category(self) -> Category:
        """The kind of problem; decide by this, never by the code."""
        # Only a problem needs the table of codes.
        return codes.category_of(self.code)

    @property
    def where(self) -> str:
        """The path as text: `spec.template.spec.containers[0].image`."""
        return dotted_path(self.path)

    def located(self, mark: Mark | None) -> Diagnostic:
        """Return the problem as a diagnostic at a place in a file."""
        return Diagnostic(self.code, self.message, mark, self.hint, self.severity, self.where)


class ProblemError(KaigenError):
    """Raised by a step that cannot go on because of one problem.

    Attributes:
        problem: what is wrong.
    """

    exit_code = 2

    def __init__(self, code: str, message: str, path: FieldPath = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.problem = Problem(code, message, path, hint)

    @classmethod
    def unknown(
        cls, code: str, what: str, name: str, known: Iterable[str], path: FieldPath, *, where: str = ""
    ) -> ProblemError:
        """Return the error for a name that is not in a list, with the nearest name that is."""
        names = sorted(known)
        hint = did_you_mean(name, names) or f"known: {some_of(names, 12) or 'none'}"
        return cls(code, f"unknown {what} `{name}`{where}", path, hint)
