"""Failures, each with an exit code for a Job's `podFailurePolicy`."""

from __future__ import annotations


class Failure(Exception):
    """Base class of failures that are printed in one line, without a traceback.

    Attributes:
        code: exit code of the process.
        reason: name of the failure in error JSON.
    """

    code: int
    reason: str

    def __init_subclass__(cls, *, code: int) -> None:
        cls.code, cls.reason = code, cls.__name__


class BadSettings(Failure, code=2):
    """An argument or variable is invalid."""


class NotFound(Failure, code=10):
    """The image, the folder or the list does not exist, or has no images."""


class BadImage(Failure, code=11):
    """A file is not an image, or it is broken or too large."""


class NoneRead(BadImage, code=11):
    """No image of several could be read. The result has the reason of each."""


class BadWeights(Failure, code=12):
    """The weights are missing, have another checksum, or do not fit the network."""


class NoDevice(Failure, code=13):
    """There is no GPU, or the batch does not fit in its memory."""


class NotWritten(Failure, code=20):
    """The result could not be written."""
