"""The problems that one compile step reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.problem import Problem, ProblemError

T = TypeVar("T")


class Problems:
    """Problems of one spec.

    Attributes:
        items: errors, and warnings that do not stop the compilation; their paths lead into the spec.
        diagnostics: problems that have a place of their own, such as a line of a template.
    """

    def __init__(self) -> None:
        self.items: list[Problem] = []
        self.diagnostics: list[Diagnostic] = []
        self._stopped = False

    def error(self, code: str, message: str, path: FieldPath, hint: str = "") -> None:
        """Add an error; the caller goes on, so that one run reports all errors."""
        self.items.append(Problem(code, message, path, hint))

    def warning(self, code: str, message: str, path: FieldPath, hint: str = "") -> None:
        """Add a warning about something that works but may surprise."""
        self.items.append(Problem(code, message, path, hint, Severity.WARNING))

    def add(self, problem: Problem) -> None:
        """Add a problem that another step returned or raised."""
        self.items.append(problem)

    def add_diagnostic(self, item: Diagnostic) -> None:
        """Add a problem that has a place of its own, such as a line of a template."""
        self.diagnostics.append(item)

    def stop(self) -> None:
        """Stop the compilation without an error here, since another spec of the same document has one."""
        self._stopped = True

    @property
    def failed(self) -> bool:
        """Whether an error was added, or the compilation is stopped."""
        severities = [item.severity for item in self.items] + [item.severity for item in self.diagnostics]
        return self._stopped or Severity.ERROR in severities

    def attempt(self, step: Callable[[], T], default: T) -> T:
        """Return the step's result, or the default after adding the error that the step raises."""
        try:
            return step()
        except ProblemError as error:
            self.items.append(error.problem)
            return default
