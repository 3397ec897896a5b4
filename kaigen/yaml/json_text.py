"""Compose JSON text into the same node trees as YAML, strictly by RFC 8259.

Own code because json.loads gives no positions, and a YAML parser accepts text that is not JSON and rejects some JSON:
tabs between tokens, keys over 1,024 characters, escaped surrogate pairs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import NoReturn

from yaml.error import Mark
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kaigen.yaml.compose import MAX_DEPTH, PLAIN, TEXT, Unreadable, too_deep

_SPACE = re.compile(r"[ \t\n\r]*")
_LITERAL = re.compile(r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null)(?=[\s,:{}\[\]\"']|\Z)")
_BARE = re.compile(r"[^\s,:{}\[\]\"']+")


def compose_json(text: str) -> Node | None:
    """Return the tree of a JSON text; None for an empty one.

    Raises:
        Unreadable: for text that is not JSON, and for nesting that is too deep.
    """
    return _Composer(text).document()


class _Composer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def document(self) -> Node | None:
        self._skip()
        if self._at == len(self._text):
            return None
        root = self._value(1)
        self._skip()
        if self._at < len(self._text):
            self._reject(
                "more text after the end of the value", "a JSON file contains one value; check for a surplus comma"
            )
        return root

    def _reject(self, message: str, hint: str, index: int | None = None) -> NoReturn:
        raise Unreadable(self._at if index is None else index, "KG0121", f"not JSON: {message}", hint)

    def _mark(self, index: int) -> Mark:
        line = bisect_right(self._lines, index) - 1
        return Mark("", index, line, index - self._lines[line], None, 0)

    def _skip(self) -> str:
        """Skip white space and return the next character; empty at the end."""
        found = _SPACE.match(self._text, self._at)
        assert found
        self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _value(self, level: int) -> Node:
        char = self._skip()
        start = self._at
        if level > MAX_DEPTH:
            raise too_deep(start)
        if char == '"':
            return self._string()
        if char == "{":
            return self._object(level)
        if char == "[":
            return self._array(level)
        found = _LITERAL.match(self._text, start)
        if found:
            self._at = found.end()
            return ScalarNode(PLAIN, found.group(), self._mark(start), self._mark(self._at), "")
        if not char:
            self._reject("the text ends where a value is expected", "the file may be cut off")
        if char == "'":
            self._reject("text in single quotes", "use double quotes")
        if char in "]}":
            self._reject(f"a value is expected before `{char}`", "remove the comma before it")
        if char in "/#":
            self._reject("a comment", "remove it: only YAML has comments")
        bare = _BARE.match(self._text, start)
        shown = bare.group()[:40] if bare else char
        self._reject(f"`{shown}` is not a value", f'quote it to make it text: "{shown}"')

    def _string(self) -> Node:
        start = self._at
        try:
            value, self._at = scanstring(self._text, start + 1, True)
        except JSONDecodeError as error:
            message = error.msg.lower()
            if "unterminated" in message:
                self._reject("a string without its closing quote", 'close it with `"`', start)
            if "control character" in message:
                self._reject(
                    "a line end or control character inside a string", "write it as \\n, \\t or \\u00XX", error.pos
                )
            self._reject("an invalid escape", 'after a backslash, JSON allows one of " \\ / b f n r t u', error.pos)
        return ScalarNode(TEXT, value, self._mark(start), self._mark(self._at), '"')

    def _object(self, level: int) -> Node:
        start = self._at
        pairs: list[tuple[Node, Node]] = []
        self._at += 1
        char = self._skip()
        while char != "}":
            if char != '"':
                self._wrong_key(char, start)
            key = self._string()
            if self._skip() != ":":
                self._reject("`:` is expected after a key", 'write "key": value')
            self._at += 1
            pairs.append((key, self._value(level + 1)))
            char = self._next("}", start)
        self._at += 1
        return MappingNode(PLAIN, pairs, self._mark(start), self._mark(self._at), True)

    def _array(self, level: int) -> Node:
        start = self._at
        items: list[Node] = []
        self._at += 1
        char = self._skip()
        while char != "]":
            items.append(self._value(level + 1))
            char = self._next("]", start)
        self._at += 1
        return SequenceNode(PLAIN, items, self._mark(start), self._mark(self._at), True)

    def _next(self, closing: str, start: int) -> str:
        """Skip the comma after a member and return the next character, or the closing bracket."""
        char = self._skip()
        if char == closing:
            return char
        if char == ",":
            self._at += 1
            char = self._skip()
            if char in ("]", "}"):
                self._reject(f"a value is expected before `{char}`", "remove the comma before it")
            return char
        if not char:
            self._reject(f"`{self._text[start]}` is never closed", f"add the missing `{closing}`", start)
        self._reject(f"`,` or `{closing}` is expected", "check for a missing comma before this")

    def _wrong_key(self, char: str, start: int) -> NoReturn:
        if not char:
            self._reject("`{` is never closed", "add the missing `}`", start)
        if char in "/#":
            self._reject("a comment", "remove it: only YAML has comments")
        self._reject("a key must be in double quotes", 'write "key": value')
