"""Patterns of `.dockerignore`, matched in linear time.

The rules are those of Docker's and BuildKit's matcher (github.com/moby/patternmatcher), which differ from Git's: a
pattern without a slash matches at the top only, and `!` includes files of excluded folders again.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

_Ranges = tuple[tuple[str, str], ...]
_Kind = Literal["one", "name", "path", "folders", "below"]


class MalformedPattern(ValueError):
    """A pattern cannot be read."""


class _Token(Struct, frozen=True):
    """A step of a pattern.

    Attributes:
        kind: `one` character of the ranges; `name`, any characters but a slash; `path`, any characters; `folders`,
            any folders or none, followed by `below`, their path up to a slash.
        ranges: first and last characters.
        negated: whether all other characters match.
    """

    kind: _Kind
    ranges: _Ranges = ()
    negated: bool = False

    def accepts(self, char: str) -> bool:
        """Return whether a character is one of the ranges."""
        return any(low <= char <= high for low, high in self.ranges) != self.negated


_NOT_SLASH = (("/", "/"),)


class Pattern:
    """One pattern.

    Attributes:
        text: without `!`.
        includes: whether it includes again what earlier ones exclude.
    """

    def __init__(self, line: str) -> None:
        """Read a pattern.

        Raises:
            MalformedPattern: it cannot be read.
        """
        self.includes = line.startswith("!")
        self.text = line[1:] if self.includes else line
        if not self.text or (self.includes and self.text == "/"):
            raise MalformedPattern("`!` needs a pattern")
        self._tokens = (*_tokens(self.text),)
        self._is_literal = all(token.kind == "one" and _is_char(token) for token in self._tokens)
        self._literal = "".join(token.ranges[0][0] for token in self._tokens) if self._is_literal else ""
        self._masks: dict[str, int] = {}
        self._single = self._bits("one")
        self._in_name = self._bits("name")
        self._in_path = self._bits("path", "below")
        self._below = self._bits("below")
        self._optional = self._bits("name", "path", "folders")
        self._pairs = self._bits("folders")

    def _bits(self, *kinds: _Kind) -> int:
        return sum(1 << at for at, token in enumerate(self._tokens) if token.kind in kinds)

    def may_match_below(self, folder: str) -> bool:
        """Return whether a path in a folder may match; False only if none can."""
        return not self._is_literal or self._literal.startswith(f"{folder}/")

    def matches(self, path: str) -> bool:
        """Return whether the whole path matches; the cost is that of its length times the pattern's."""
        if self._is_literal:
            return path == self._literal
        if not self._accepts_last(path):
            return False
        state = self._reached(1)
        for char in path:
            state = self._next(state, char)
            if not state:
                return False
        return bool(state >> len(self._tokens) & 1)

    def _accepts_last(self, path: str) -> bool:
        """Return whether the last character can be the last one of a match: the fast answer for most paths."""
        last = self._tokens[-1]
        return last.kind != "one" or last.accepts(path[-1:])

    def _next(self, state: int, char: str) -> int:
        """Return the tokens that may come next after a character; a bit for each, and one for the end."""
        mask = self._masks.get(char)
        if mask is None:
            mask = sum(1 << at for at, token in enumerate(self._tokens) if token.kind == "one" and token.accepts(char))
            self._masks[char] = mask
        moved = (state & mask & self._single) << 1 | state & self._in_path
        moved |= (state & self._below) << 1 if char == "/" else state & self._in_name
        return self._reached(moved)

    def _reached(self, state: int) -> int:
        """Return the tokens that may come next, also after tokens that match nothing."""
        while True:
            more = state | (state & self._optional) << 1 | (state & self._pairs) << 2
            if more == state:
                return state
            state = more


def _is_char(token: _Token) -> bool:
    return not token.negated and len(token.ranges) == 1 and token.ranges[0][0] == token.ranges[0][1]


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if text.startswith("**", at - 1):
            at += 1
            has_slash = text.startswith("/", at)
            first, at = at == 2, at + has_slash
            # `**name` matches the end of any path.
            if at == len(text) or (first and not has_slash and not set(text[at:]) & set("*?[]\\")):
                yield _Token("path")
            else:
                yield _Token("folders")
                yield _Token("below")
        elif char == "*":
            yield _Token("name")
        elif char == "?":
            yield _Token("one", _NOT_SLASH, negated=True)
        elif char == "[":
            token, at = _class(text, at)
            yield token
        else:
            if char == "\\":
                char, at = _escaped(text, at - 1)
            yield _Token("one", ((char, char),))


def _class(text: str, at: int) -> tuple[_Token, int]:
    """Return a class such as `[a-z]`, and where it ends."""
    negated = text.startswith("^", at)
    at += negated
    ranges: list[tuple[str, str]] = []
    while not (ranges and text.startswith("]", at)):
        if text[at : at + 1] in ("", "-", "]"):
            raise MalformedPattern(f"`{text}` has a `[` without its end")
        low, at = _escaped(text, at)
        high = low
        if text.startswith("-", at):
            if text[at + 1 : at + 2] in ("", "-", "]"):
                raise MalformedPattern(f"`{text}` has a range without its end")
            high, at = _escaped(text, at + 1)
        if high < low:
            raise MalformedPattern(f"`{text}` has the range `{low}-{high}`, which is empty")
        ranges.append((low, high))
    return _Token("one", tuple(ranges), negated), at + 1


def _escaped(text: str, at: int) -> tuple[str, int]:
    """Return a character that may follow a backslash, and where it ends."""
    if text[at] != "\\":
        return text[at], at + 1
    if at + 1 == len(text):
        raise MalformedPattern(f"`{text}` ends in a backslash")
    return text[at + 1], at + 2


def read_lines(text: str) -> list[tuple[int, str]]:
    """Return the patterns of an ignore file with their line numbers, normalized."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        pattern = line.strip()
        if line.startswith("#") or not pattern:
            continue
        negation = "!" if pattern.startswith("!") else ""
        pattern = pattern.removeprefix("!").strip()
        if pattern:
            pattern = posixpath.normpath(pattern)
            # normpath keeps two slashes at the start.
            pattern = pattern.lstrip("/").strip() or "/"
        found.append((number, negation + pattern))
    return found


class Matches(Struct, frozen=True):
    """What the patterns say about a path.

    Attributes:
        ignored: whether it is excluded.
        by: for each pattern, whether it matches the path or a folder above it.
    """

    ignored: bool
    by: tuple[bool, ...]


class IgnoreRules:
    """The patterns of an ignore file, in their order: the last one that matches decides."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        self.top = Matches(False, (False,) * len(patterns))
        """What the patterns say about the folder itself."""

    def of(self, path: str, above: Matches) -> Matches:
        """Return what the patterns say about a path.

        Args:
            path: below the folder, with slashes.
            above: what they say about the folder that has it.
        """
        ignored = False
        by = []
        for pattern, inherited in zip(self._patterns, above.by, strict=True):
            # A pattern that would change nothing is not tried, also not for what is below: so does BuildKit.
            match = inherited or (pattern.includes == ignored and pattern.matches(path))
            by.append(match)
            if match:
                ignored = not pattern.includes
        return Matches(ignored, tuple(by))

    def may_include_below(self, folder: str) -> bool:
        """Return whether a pattern may include a path in an excluded folder again."""
        return any(each.includes and each.may_match_below(folder) for each in self._patterns)
