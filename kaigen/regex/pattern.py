"""Searches texts for regular expressions in linear time, whatever the pattern is.

Python's `re` tries one way after the other: `(a+)+$` takes longer than the age of the universe for 100 characters.
This module follows all ways at once (source: Thompson, "Regular Expression Search Algorithm", 1968). A set of states
is computed once and kept, so most texts take one look-up for each character. The package google-re2 does the same, but
has no wheels for musl, which the images of many pipelines use; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from kaigen.regex.parser import WORD, Assertion, Chars, Choice, Node, PatternError, Repeat, Sequence, parse

_MOST_STATES = 5000
_MOST_STEPS = 50_000
"""Nodes that are visited to compile a pattern: repetitions of nothing make no state."""
_MOST_CACHED = 10_000
"""Places that are kept, which bounds the memory."""

_WORD = Chars(WORD)


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Pattern:
    """Return a compiled pattern; the same one for the same text.

    Raises:
        PatternError: it is not a regular expression, or has no search in linear time.
    """
    return Pattern(pattern)


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches somewhere in a text.

    Raises:
        PatternError: as for `compile_pattern`.
    """
    return compile_pattern(pattern).search(text)


class _State(Struct):
    """A step of a search.

    Attributes:
        chars: the character that it takes; None for one that takes none.
        assertion: the condition under which it goes on, if any.
        then: the states that follow.
    """

    chars: Chars | None = None
    assertion: Assertion | None = None
    then: tuple[int, ...] = ()


class _Row(dict[str, "_Row"]):
    """A place of a search in a text, with the places that follow by character.

    Attributes:
        taken: a bit for each state that has taken the last character.
        previous: whether the last character is part of a word; None at the start.
    """

    __slots__ = ("previous", "taken")

    def __init__(self, taken: int, previous: bool | None) -> None:
        super().__init__()
        self.taken = taken
        self.previous = previous


_FOUND = _Row(0, None)
"""The place of a search that has found a match."""


class Pattern:
    """A compiled regular expression."""

    def __init__(self, pattern: str) -> None:
        """Compile it.

        Raises:
            PatternError: it is not a regular expression, or is too large.
        """
        self._states: list[_State] = []
        self._steps = 0
        end = self._compile(parse(pattern), self._add(_State()))
        # Takes nothing: the search begins with what follows it, at every place of the text.
        self._start = 1 << self._add(_State(then=(end,)))
        self._chars = {state.chars for state in self._states if state.chars is not None}
        self._clear()

    def _clear(self) -> None:
        self._size = 0
        self._rows: dict[tuple[int, bool | None], _Row] = {}
        self._reachable: dict[Collection[Assertion], dict[tuple[int, str], int]] = {}
        self._takers: dict[str, int] = {}

    def search(self, text: str) -> bool:
        """Return whether the pattern matches somewhere in a text."""
        row = self._row(0, None)
        # After the last character comes the end, an empty one.
        for char in chain(text, ("",)):
            following = row.get(char)
            if following is None:
                following = row[char] = self._follow(row, char)
            if following is _FOUND:
                return True
            row = following
        return False

    def _row(self, taken: int, previous: bool | None) -> _Row:
        key = taken, previous
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = _Row(*key)
        return found

    def _follow(self, row: _Row, char: str) -> _Row:
        """Return the place after a character; that after the end of the text for an empty one."""
        self._size += 1
        if self._size > _MOST_CACHED:
            self._clear()
        is_word = bool(char) and _WORD.has(char)
        holding = {Assertion.BOUNDARY if bool(row.previous) is not is_word else Assertion.NO_BOUNDARY}
        holding |= {Assertion.START} if row.previous is None else set()
        holding |= set() if char else {Assertion.END}
        context = frozenset(holding)
        known = self._reachable.setdefault(context, {})
        # Four states at once: a place may have thousands of them.
        reached = 0
        for place, digit in enumerate(reversed(f"{row.taken | self._start:x}")):
            if digit != "0":
                found = known.get((place, digit))
                if found is None:
                    found = known[place, digit] = self._reached(int(digit, 16) << 4 * place, context)
                reached |= found
        if reached & 1:
            return _FOUND
        return self._row(reached & self._taking(char), is_word)

    def _reached(self, taken: int, context: Collection[Assertion]) -> int:
        """Return a bit for each state after some others which ends the match or takes the next character."""
        pending = [
            index for start in range(taken.bit_length()) if taken >> start & 1 for index in self._states[start].then
        ]
        seen: set[int] = set()
        found = 0
        while pending:
            index = pending.pop()
            if index in seen:
                continue
            seen.add(index)
            state = self._states[index]
            if state.chars is not None or index == 0:
                found |= 1 << index
            elif state.assertion is None or state.assertion in context:
                pending += state.then
        return found

    def _taking(self, char: str) -> int:
        """Return a bit for each state that takes a character."""
        found = self._takers.get(char)
        if found is None:
            fitting = {chars for chars in self._chars if char and chars.has(char)}
            found = 0
            for index, state in enumerate(self._states):
                found |= (state.chars in fitting) << index
            self._takers[char] = found
        return found

    def _add(self, state: _State) -> int:
        if len(self._states) >= _MOST_STATES:
            raise PatternError("it is too large", "repeat fewer times, or use `maxLength`")
        self._states.append(state)
        return len(self._states) - 1

    def _compile(self, node: Node, then: int) -> int:
        """Return the first state of a node, after whose match the search goes on with the state `then`."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise PatternError("it is too large", "repeat fewer times, or use `maxLength`")
        if isinstance(node, Chars):
            return self._add(_State(chars=node, then=(then,)))
        if isinstance(node, Assertion):
            return self._add(_State(assertion=node, then=(then,)))
        if isinstance(node, Sequence):
            for item in reversed(node.items):
                then = self._compile(item, then)
            return then
        if isinstance(node, Choice):
            options = tuple(self._compile(option, then) for option in node.options)
            return self._add(_State(then=options))
        return self._repeat(node, then)

    def _repeat(self, node: Repeat, then: int) -> int:
        end = then
        if node.most is None:
            loop = _State()
            then = self._add(loop)
            loop.then = (self._compile(node.item, then), end)
        else:
            for _ in range(node.most - node.least):
                then = self._add(_State(then=(self._compile(node.item, then), end)))
        for _ in range(node.least):
            then = self._compile(node.item, then)
        return then
