"""The syntax tree of a regular expression."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

LAST = 0x10FFFF
"""The last code point."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points, both ends included."""


class Chars(Struct, frozen=True):
    """One character.

    Attributes:
        ranges: of code points.
        negated: whether it is any other character.
        ignore_case: whether upper and lower case are the same.
    """

    ranges: Ranges
    negated: bool = False
    ignore_case: bool = False

    def has(self, char: str) -> bool:
        """Return whether a character is one of these."""
        forms = {char, char.lower(), char.upper()} if self.ignore_case else (char,)
        found = any(first <= ord(form) <= last for form in forms if len(form) == 1 for first, last in self.ranges)
        return found is not self.negated


class Assertion(Enum):
    """A condition on a place between two characters."""

    START = "^"
    END = "$"
    BOUNDARY = r"\b"
    NO_BOUNDARY = r"\B"


class Sequence(Struct, frozen=True):
    """Nodes one after the other."""

    items: tuple[Node, ...]


class Choice(Struct, frozen=True):
    """One of several nodes."""

    options: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    """A node several times.

    Attributes:
        item: the node.
        least: number of times.
        most: number of times; None for no limit.
    """

    item: Node
    least: int
    most: int | None


Node: TypeAlias = Chars | Assertion | Sequence | Choice | Repeat

DIGITS: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
BLANKS: Ranges = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))


def complement(ranges: Ranges) -> Ranges:
    """Return all other code points."""
    found: list[tuple[int, int]] = []
    start = 0
    for first, last in sorted(ranges):
        if first > start:
            found.append((start, first - 1))
        start = max(start, last + 1)
    return (*found, (start, LAST)) if start <= LAST else tuple(found)
