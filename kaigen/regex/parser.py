"""Parses regular expressions in the syntax of RE2, as far as JSON Schema has it.

Helm and Kubernetes check the same patterns with RE2, so `\\d`, `\\w`, `\\s` and `\\b` are about ASCII, and `$` is the
end of the text. What RE2 does not have, such as backreferences and lookaheads, is an error; so are Unicode categories,
which Python's own expressions do not have.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NoReturn, TypeAlias

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


DIGITS: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
BLANKS: Ranges = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))

_MOST_REPEATS = 1000
"""As in RE2."""
_DEEPEST = 100
_LONGEST = 10_000

_COUNT = re.compile(r"\{([0-9]{1,9})(?:(,)([0-9]{0,9}))?\}", re.ASCII)
_FLAGS = re.compile(r"([is]*)(?:-([is]+))?([:)])")
_NAME = re.compile(r"P?<([A-Za-z_][A-Za-z0-9_]*)>", re.ASCII)
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,8})\})")

_CONTROL = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_CLASSES = {"d": DIGITS, "w": WORD, "s": BLANKS}
_ASSERTIONS = {"A": Assertion.START, "z": Assertion.END, "b": Assertion.BOUNDARY, "B": Assertion.NO_BOUNDARY}
_LOOKS = ("?=", "?!", "?<=", "?<!")
_NEWLINE: Ranges = ((10, 10),)


Node: TypeAlias = Chars | Assertion | Sequence | Choice | Repeat


class PatternError(ValueError):
    """A pattern that is not a regular expression, or one that does not end in linear time.

    Attributes:
        hint: what to write instead; may be empty.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class _Flags(Struct, frozen=True):
    ignore_case: bool = False
    dot_all: bool = False


def parse(pattern: str) -> Node:
    """Return the syntax tree of a regular expression.

    Raises:
        PatternError: it is not one.
    """
    if len(pattern) > _LONGEST:
        raise PatternError(f"it has more than {_LONGEST:,} characters")
    parser = _Parser(pattern)
    node = parser.choice(_Flags(), 0)
    if parser.at < len(pattern):
        raise PatternError(f"unbalanced `)` at position {parser.at + 1}")
    return node


class _Parser:
    """Reads a pattern from the left to the right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.names: set[str] = set()

    def _next(self) -> str:
        """Return the next character; empty at the end."""
        return self.pattern[self.at : self.at + 1]

    def _take(self, text: str) -> bool:
        """Skip a text, if it is the next one."""
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _match(self, form: re.Pattern[str]) -> re.Match[str] | None:
        """Skip what matches a pattern, if it is next."""
        found = form.match(self.pattern, self.at)
        self.at = found.end() if found else self.at
        return found

    def _fail(self, problem: str, hint: str = "") -> NoReturn:
        raise PatternError(f"{problem} at position {self.at + 1}", hint)

    def choice(self, flags: _Flags, depth: int) -> Node:
        """Return the alternatives up to the end of the group."""
        options: list[Node] = []
        items: list[Node] = []
        while (char := self._next()) and char != ")":
            if self._take("|"):
                options.append(Sequence(tuple(items)))
                items = []
            elif (changed := self._flags_of_rest(flags)) is not None:
                flags = changed
            else:
                items.append(self._repeated(self._atom(flags, depth)))
        options.append(Sequence(tuple(items)))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _flags_of_rest(self, flags: _Flags) -> _Flags | None:
        """Skip flags for the rest of the group, such as `(?i)`; return all flags, or None if there are none."""
        found = _FLAGS.match(self.pattern, self.at + 2) if self.pattern.startswith("(?", self.at) else None
        if found is None or found[3] != ")" or not (found[1] or found[2]):
            return None
        self.at = found.end()
        return _changed(flags, found)

    def _repeated(self, node: Node) -> Node:
        """Return a node with the quantifier behind it."""
        bounds = self._quantifier()
        if bounds is None:
            return node
        self._take("?")
        if self._quantifier() is not None:
            self._fail("several quantifiers one after the other end", "put a group around the first, `(?:…)`")
        return Repeat(node, *bounds)

    def _quantifier(self) -> tuple[int, int | None] | None:
        for symbol, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._take(symbol):
                return least, most
        if re.compile(r"\{,[0-9]+\}").match(self.pattern, self.at):
            self._fail("a quantifier without a lower limit", "write `{0,…}`")
        found = self._match(_COUNT)
        if found is None:
            return None
        least = int(found[1])
        limit = int(found[3]) if found[3] else None if found[2] else least
        if least > _MOST_REPEATS or (limit or 0) > _MOST_REPEATS:
            self._fail(f"more than {_MOST_REPEATS} repetitions")
        if limit is not None and limit < least:
            self._fail("an upper limit below the lower one")
        return least, limit

    def _atom(self, flags: _Flags, depth: int) -> Node:
        if self._quantifier() is not None:
            self._fail("nothing to repeat before the quantifier")
        char = self._next()
        self.at += 1
        if char == "(":
            return self._group(flags, depth + 1)
        if char == "[":
            return self._class(flags)
        if char == "\\":
            return self._escape(flags)
        if char == ".":
            return Chars((), negated=True) if flags.dot_all else Chars(_NEWLINE, negated=True)
        if char in "^$":
            return Assertion(char)
        return Chars(((ord(char), ord(char)),), ignore_case=flags.ignore_case)

    def _group(self, flags: _Flags, depth: int) -> Node:
        if depth > _DEEPEST:
            self._fail(f"groups in more than {_DEEPEST} groups")
        if any(self.pattern.startswith(look, self.at) for look in _LOOKS):
            hint = "write two patterns, such as `allOf: [{pattern: …}, {not: {pattern: …}}]`"
            self._fail("a lookahead or lookbehind", hint)
        if self._take("?"):
            if named := self._match(_NAME):
                if named[1] in self.names:
                    self._fail(f"a second group with the name `{named[1]}`")
                self.names.add(named[1])
            elif (found := self._match(_FLAGS)) and found[3] == ":":
                flags = _changed(flags, found)
            else:
                self._fail("an unknown group")
        node = self.choice(flags, depth)
        if not self._take(")"):
            self._fail("a missing `)`")
        return node

    def _escape(self, flags: _Flags) -> Node:
        char = self._next()
        if char in _ASSERTIONS and char:
            self.at += 1
            return _ASSERTIONS[char]
        if char == "Z":
            self._fail(r"`\Z`", "write `$`, which matches only the end of the text")
        if char and char in "123456789":
            self._fail("a backreference", "regular expressions in linear time have none")
        ranges = self._escaped()
        return Chars(ranges, ignore_case=flags.ignore_case)

    def _escaped(self) -> Ranges:
        """Return the characters of an escape sequence in or outside a class."""
        char = self._next()
        if char.lower() in _CLASSES and char:
            self.at += 1
            ranges = _CLASSES[char.lower()]
            return ranges if char.islower() else complement(ranges)
        if found := self._match(_HEX):
            code = int(found[1] or found[2], 16)
            if code > LAST:
                self._fail("no Unicode character")
        elif char in _CONTROL and char:
            self.at += 1
            code = _CONTROL[char]
        elif char.isascii() and char.isprintable() and char and not char.isalnum() and char != "_":
            self.at += 1
            code = ord(char)
        else:
            self._fail(f"an unknown escape sequence `\\{char}`")
        return ((code, code),)

    def _class(self, flags: _Flags) -> Node:
        start = self.at
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self._next() != "]":
            first = False
            if self.at >= len(self.pattern):
                self.at = start
                self._fail("a missing `]` of the class")
            if self.pattern.startswith("[:", self.at):
                self._fail("a class of POSIX", "write its characters, such as `a-z`")
            ranges += self._class_item()
        self.at += 1
        return Chars(tuple(ranges), negated=negated, ignore_case=flags.ignore_case)

    def _class_item(self) -> Ranges:
        """Return the next character, range or escape sequence of a class."""
        low = self._class_char()
        rest = self.pattern[self.at : self.at + 2]
        if not rest.startswith("-") or len(rest) < 2 or rest[1] == "]":
            return low
        self.at += 1
        high = self._class_char()
        if len(low) > 1 or len(high) > 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
            self._fail("a range of which one end is a class")
        if high[0][0] < low[0][0]:
            self._fail("a range with its ends in reverse order")
        return ((low[0][0], high[0][0]),)

    def _class_char(self) -> Ranges:
        char = self._next()
        if not char:
            self._fail("a missing `]` of the class")
        self.at += 1
        return self._escaped() if char == "\\" else ((ord(char), ord(char)),)


def _changed(flags: _Flags, found: re.Match[str]) -> _Flags:
    on, off = found[1] or "", found[2] or ""
    return _Flags(
        ignore_case=(flags.ignore_case or "i" in on) and "i" not in off,
        dot_all=(flags.dot_all or "s" in on) and "s" not in off,
    )


def complement(ranges: Ranges) -> Ranges:
    """Return all other code points."""
    found: list[tuple[int, int]] = []
    start = 0
    for first, last in sorted(ranges):
        if first > start:
            found.append((start, first - 1))
        start = max(start, last + 1)
    return (*found, (start, LAST)) if start <= LAST else tuple(found)
