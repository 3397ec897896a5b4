"""Failures, each with an exit code for a Job's `podFailurePolicy`."""

from __future__ import annotations


class Failure(Exception):
    """Base class of failures that are printed in one line, without a traceback.

    Attributes:
        code: exit code of the process.
    """

    code = 20


class Conflict(Failure):
    """An object with the same name belongs to another app: a retry does not help."""

    code = 10


class BadInput(Failure):
    """An argument or variable is invalid, or the API server finds the object invalid."""

    code = 13


class Unavailable(Failure):
    """The API server did not do what was needed, also after retries."""

    code = 20


class ApiUnavailable(Unavailable):
    """The API server cannot be reached, or the pod has no token for it.

    Attributes:
        status: of the answer, or 0 if there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
