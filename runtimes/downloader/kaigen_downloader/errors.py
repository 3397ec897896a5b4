"""What may go wrong, each with the exit code that a Job's `podFailurePolicy` can act on."""

from __future__ import annotations


class Failure(Exception):
    """Root of what the user is told in one line, without a traceback.

    Attributes:
        code: exit code of the process.
    """

    code = 20


class Refused(Failure):
    """Not found, gated, or no access: trying again with the same spec changes nothing."""

    code = 10


class Corrupt(Failure):
    """The bytes do not have the checksum or size that the source names, also after fetching them again."""

    code = 11


class NoSpace(Failure):
    """The volume is too small."""

    code = 12


class BadInput(Failure):
    """An argument, a file name from the server, or the state of the folder cannot be accepted."""

    code = 13


class Unavailable(Failure):
    """The network or the server failed, and went on failing while we tried again."""

    code = 20


class Transient(Failure):
    """One attempt failed in a way that may pass. Caught where attempts are counted.

    Attributes:
        retry_after: seconds the server asked us to wait, or None.
    """

    code = 20

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Stopped(Exception):
    """A worker was told to end because another one failed. Never reaches the user."""
