"""What a compile step says when a spec is valid by itself but cannot become an app."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kaigen.compile.expressions import SpecPath
from kaigen.diagnostics.diagnostic import Diagnostic, Severity

T = TypeVar("T")


class SpecProblem(Exception):
    """One thing that is wrong with a spec, at a path in it. The caller turns it into a diagnostic.

    Attributes:
        code: diagnostic code.
        path: the field.
        hint: how to mend it.
    """

    def __init__(self, code: str, message: str, path: SpecPath, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.path = path
        self.hint = hint

    @classmethod
    def unknown(
        cls, code: str, what: str, name: str, known: Iterable[str], path: SpecPath, *, where: str = ""
    ) -> SpecProblem:
        """A name that is not in a list, with the nearest that is."""
        from kaigen.diagnostics.suggest import did_you_mean

        names = sorted(known)
        listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        return cls(
            code,
            f"unknown {what} `{name}`{where}",
            path,
            did_you_mean(name, names) or f"known: {listed or 'none'}",
        )


class Problems:
    """What a compile step found: errors, and warnings that do not stop it."""

    def __init__(self) -> None:
        self.errors: list[SpecProblem] = []
        self.warnings: list[SpecProblem] = []
        self.told: list[Diagnostic] = []

    def error(self, code: str, message: str, path: SpecPath, hint: str = "") -> None:
        """Note an error and go on, so that one run tells them all."""
        self.errors.append(SpecProblem(code, message, path, hint))

    def warning(self, code: str, message: str, path: SpecPath, hint: str = "") -> None:
        """Note something that works but will surprise."""
        self.warnings.append(SpecProblem(code, message, path, hint))

    def tell(self, item: Diagnostic) -> None:
        """Note what has a place of its own, such as a line of a template."""
        self.told.append(item)

    @property
    def failed(self) -> bool:
        """Whether an error was noted."""
        return bool(self.errors) or any(item.severity is Severity.ERROR for item in self.told)

    def attempt(self, step: Callable[[], T], otherwise: T) -> T:
        """The step's result; when it finds an error, note that and go on with `otherwise`."""
        try:
            return step()
        except SpecProblem as problem:
            self.errors.append(problem)
            return otherwise
