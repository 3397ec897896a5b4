"""Failures, each with an exit code for a Job's `podFailurePolicy`."""

from __future__ import annotations


class Failure(Exception):
    """Base class of failures that are printed in one line, without a traceback.

    Attributes:
        code: exit code of the process.
    """

    code = 20


class Refused(Failure):
    """Not found, gated, or no access: retrying with the same spec does not help."""

    code = 10


class Corrupt(Failure):
    """Wrong checksum or size, even after fetching again."""

    code = 11


class NoSpace(Failure):
    """The volume is too small."""

    code = 12


class BadInput(Failure):
    """An argument, a file name from the server, or the state of the folder is invalid."""

    code = 13


class JobFailed(Failure):
    """The Job that is waited for has failed."""

    code = 14


class Unavailable(Failure):
    """The network or the server failed, and all retries failed too."""

    code = 20


class Transient(Failure):
    """One attempt failed with an error that may be temporary. Caught where attempts are counted.

    Attributes:
        retry_after: seconds the server asked us to wait, or None.
    """

    code = 20

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Stopped(Exception):
    """A worker was stopped because another one failed. Never reaches the user."""
