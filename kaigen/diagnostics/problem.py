"""A problem before its file is known, and the exception that carries one.

`Diagnostic` is a problem with its place in a file. Steps that work on plain data, such as compilers of kinds and
checks of objects, return or raise a `Problem`; the caller that knows the file turns it into a diagnostic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kaigen.core.json_types import FieldPath
from kaigen.core.text import some_of
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.errors import KaigenError
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.diagnostics import codes

if TYPE_CHECKING:
    from kaigen.diagnostics.category import Category


_SIMPLE = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


class At(str):
    """A step of a path into a list: the element's name, or its number when it has none."""

    __slots__ = ()


def dotted_path(path: Iterable[str | int]) -> str:
    """Return a path as messages show it; empty for the document itself.

    Such as `spec.command[2]`, `spec.containers[run].image`, `metadata.labels["kaigen.dev/app"]`.
    """
    text = ""
    for step in path:
        if isinstance(step, (int, At)):
            text += f"[{step}]"
        elif _SIMPLE.fullmatch(step):
            text += f".{step}" if text else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{escaped}"]'
    return text


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
        known_ones = f"known: {some_of(names, 12)}" if names else f"there is no {what} yet{where}; add one"
        hint = did_you_mean(name, names) or known_ones
        return cls(code, f"unknown {what} `{name}`{where}", path, hint)


T = TypeVar("T")

MOST = 1000
"""Most problems of one document that are reported. Finding the position and the hint of each takes time."""


def first_problems(found: Sequence[Problem]) -> list[Problem]:
    """Return at most `MOST` problems of a document, the most severe ones, and one that says how many more there are."""
    return [problem for _, problem in first_of([(None, problem) for problem in found])]


def first_of(found: Sequence[tuple[T, Problem]]) -> list[tuple[T, Problem]]:
    """Return the same for problems of the objects of a document, each with its object."""
    if len(found) <= MOST:
        return [*found]
    ranked = sorted(range(len(found)), key=lambda place: -found[place][1].severity)
    shown = [found[place] for place in sorted(ranked[:MOST])]
    item, last = shown[-1]
    how_many = f"{len(found) - MOST:,} more problems"
    return [*shown, (item, more_problems(last, how_many, found[ranked[MOST]][1]))]


def more_problems(last: Problem, how_many: str, next_: Problem | None = None) -> Problem:
    """Return the problem that a document has more of them than are reported.

    Args:
        last: the last one that is reported.
        how_many: those that are not.
        next_: the most severe one of those; an error if it is not known.
    """
    message = f"the document has {how_many} than the {MOST:,} that are shown"
    problem = Problem("KG0210", message, last.path, "correct these first")
    return problem if next_ is None else replace(problem, severity=next_.severity)
