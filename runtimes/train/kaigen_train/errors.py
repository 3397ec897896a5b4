"""Failures, each with an exit code for a Job's `podFailurePolicy`."""

from __future__ import annotations


class Failure(Exception):
    """Base class of failures that are printed in one line, without a traceback.

    Attributes:
        code: exit code of the process.
    """

    code: int

    def __init_subclass__(cls, *, code: int) -> None:
        cls.code = code


class BadInput(Failure, code=2):
    """An argument, a setting, the model or the dataset cannot be used."""


class NoDevice(Failure, code=13):
    """There is no GPU that the method needs, or the model does not fit in its memory."""


class NotWritten(Failure, code=20):
    """The result or a checkpoint cannot be written."""


class ProcessLost(Failure, code=21):
    """Another process of the run ended, so no step can be finished."""
