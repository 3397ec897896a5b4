"""The text around the position of a parser's error."""

from __future__ import annotations

from msgspec import Struct

OPENING_OF = {"]": "[", "}": "{"}
CLOSING_OF = {"[": "]", "{": "}"}
QUOTES = {'"': "double", "'": "single"}
MOST_SCANNED = 200_000
"""Characters to examine before or after a position at most."""


class Explanation(Struct, frozen=True):
    """An error of a text and its position.

    Attributes:
        code: of the diagnostic.
        message: the error.
        hint: how to fix it.
        start: index into the whole text of the first wrong character.
        end: index after the last one; None for the rest of the line.
    """

    code: str
    message: str
    hint: str
    start: int
    end: int | None = None


class ErrorContext:
    """The text around the position that a parser reports, in one document.

    Attributes:
        text: the whole text; all positions are indexes into it.
        first: where the document begins.
        last: where it ends.
        at: where the parser noticed the error.
        began: where the construct that it was reading began; None when it does not report that.
    """

    def __init__(self, text: str, first: int, last: int, at: int, began: int | None) -> None:
        self.text = text
        self.first = first
        self.last = last
        self.at = min(max(at, first), last)
        self.began = None if began is None else min(max(began, first), last)

    @property
    def start(self) -> int:
        """Where the construct began, or where the parser noticed the error."""
        return self.at if self.began is None else self.began

    @property
    def char(self) -> str:
        """The character at the error; empty at the end of the document."""
        return self.text[self.at] if self.at < self.last else ""

    def line_start(self, index: int) -> int:
        """Return where the line of a position begins."""
        return max(self.text.rfind("\n", self.first, index) + 1, self.first)

    def line(self, index: int) -> str:
        """Return the line of a position, without its line end."""
        stop = self.text.find("\n", index, self.last)
        return self.text[self.line_start(index) : self.last if stop < 0 else stop].rstrip("\r")

    def before(self, index: int) -> str:
        """Return the text before a position on its line."""
        return self.text[self.line_start(index) : index]

    def line_before(self, index: int) -> tuple[int, str] | None:
        """Return the start and text of the nearest line above that is not blank or a comment."""
        start = self.line_start(index)
        while start > self.first:
            start = self.line_start(start - 1)
            line = self.line(start)
            if line.strip() and not line.lstrip().startswith("#"):
                return start, line
        return None
