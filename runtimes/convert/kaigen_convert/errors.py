"""Failures, each with an exit code for a Job's `podFailurePolicy`."""

from __future__ import annotations

import errno


class Failure(Exception):
    """Base class of failures that are printed in one line, without a traceback.

    Attributes:
        code: exit code of the process.
    """

    code = 20


class BadSettings(Failure):
    """An argument is invalid."""

    code = 2


class NotFound(Failure):
    """The source does not exist, is not complete, or has no file that is needed."""

    code = 10


class NotConvertible(Failure):
    """The format cannot have this model, or a file is broken."""

    code = 11


class NoSpace(Failure):
    """The volume is too small."""

    code = 12


class NotWritten(Failure):
    """The result could not be written."""

    code = 20


def explain(error: OSError, what: str) -> Failure:
    """Return the failure that an error of the file system means for the user."""
    reason = f"{what}: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return NoSpace(f"{reason}; give the volume a larger size")
    return NotWritten(reason)
