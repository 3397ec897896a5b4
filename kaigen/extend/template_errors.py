"""Errors that a template causes while it is rendered."""

from __future__ import annotations

from kaigen.diagnostics.errors import InputError, KaigenError

NAMES = ("spec", "name", "release", "run", "namespace", "labels", "profile", "kubernetes", "setting")
"""What a template knows, next to `range` and `dict`."""


class TemplateFailure(KaigenError):
    """A template cannot be rendered.

    Attributes:
        message: the error.
        word: the word to mark on the template's line; empty for the whole line.
    """

    exit_code = InputError.exit_code

    def __init__(self, message: str, hint: str = "", word: str = "") -> None:
        super().__init__(message, hint=hint)
        self.message = message
        self.word = word


class MisusedValue(TemplateFailure):
    """A value is used in a way that it does not allow."""


class LimitExceeded(TemplateFailure):
    """A template takes too many steps or produces too much text."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "limit what the template loops over, for example with `maxItems` in the schema")
