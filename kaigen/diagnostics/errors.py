"""The exceptions that a user may see without a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.diagnostics.diagnostic import Diagnostic, Mark

with lazy_imports():
    from kaigen.diagnostics import diagnostic


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
        errors = [d for d in self.diagnostics if d.severity is diagnostic.Severity.ERROR]
        first = errors[0] if errors else None
        super().__init__(f"{first.mark}: {first.message}" if first and first.mark else (first.message if first else ""))

    @classmethod
    def of(cls, code: str, message: str, *, mark: Mark | None = None, hint: str = "", path: str = "") -> InputError:
        """Return an error with a single diagnostic."""
        return cls([diagnostic.Diagnostic(code, message, mark, hint, path=path)])


class InvalidLimit(KaigenError):
    """A limit in the environment is not a number. Exit code 2."""

    exit_code = 2


class CheckFailed(KaigenError):
    """A check failed, such as `render --check` on a stale tree. Exit code 1."""

    exit_code = 1


class NotFound(CheckFailed):
    """A server does not have what a spec names, or does not show it."""


class SystemFailure(KaigenError):
    """The environment failed: cluster, network, registry, disk, or a missing program. Exit code 3."""

    exit_code = 3
