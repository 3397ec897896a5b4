"""What is around the place that a parser's error names."""

from __future__ import annotations

from dataclasses import dataclass

OPENING_OF = {"]": "[", "}": "{"}
CLOSING_OF = {"[": "]", "{": "}"}
QUOTES = {'"': "double", "'": "single"}
MOST_SCANNED = 200_000
"""Characters that are looked at on either side of a place, where there is no nearer end."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic in the making; places are indexes into the whole text."""

    code: str
    message: str
    hint: str
    start: int
    end: int | None = None


class Place:
    """What is around the places that a parser names, in the text of one document.

    Attributes:
        text: the whole text, into which all places are indexes.
        first: where the document begins.
        last: where it ends.
        at: where the parser saw the problem.
        context: where what it was reading began; None when it does not say.
    """

    def __init__(self, text: str, first: int, last: int, problem: int, context: int | None) -> None:
        self.text = text
        self.first = first
        self.last = last
        self.at = min(max(problem, first), last)
        self.context = None if context is None else min(max(context, first), last)

    @property
    def char(self) -> str:
        """The character at the place, empty at the end of the document."""
        return self.text[self.at] if self.at < self.last else ""

    def line_start(self, index: int) -> int:
        """Where the line of a place begins."""
        return max(self.text.rfind("\n", self.first, index) + 1, self.first)

    def line(self, index: int) -> str:
        """The line of a place, without its end."""
        stop = self.text.find("\n", index, self.last)
        return self.text[self.line_start(index) : self.last if stop < 0 else stop].rstrip("\r")

    def before(self, index: int) -> str:
        """What stands before a place on its line."""
        return self.text[self.line_start(index) : index]

    def line_before(self, index: int) -> tuple[int, str] | None:
        """The nearest line above that says something, with where it starts."""
        start = self.line_start(index)
        while start > self.first:
            start = self.line_start(start - 1)
            line = self.line(start)
            if line.strip() and not line.lstrip().startswith("#"):
                return start, line
        return None
