"""Phrases of messages: numbers with nouns, lists, values, and texts that are safe to print."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST = 60
"""Most characters of a value that a message repeats whole."""

_PLAIN = frozenset("._-/+=,")


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: `1 file`, `2 files`.

    Args:
        count: the number.
        noun: for one.
        nouns: for others; `noun` and an s if empty.
    """
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def series(items: Sequence[str], word: str = "and") -> str:
    """Return a list as a phrase: `a`, `a and b`, `a, b and c`; empty for none."""
    return f" {word} ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def some_of(items: Sequence[str], most: int) -> str:
    """Return the first items of a list: `a, b, …`."""
    return ", ".join(items[:most]) + (", …" if len(items) > most else "")


def clip_text(text: str, most: int = _LONGEST) -> str:
    """Return a text, or the beginning of one that has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}…"


def printable(text: str, replacement: str = "?", keep: str = "") -> str:
    """Return the text with a replacement for each character that is neither printable nor one of `keep`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else replacement for char in text)


def shown_name(text: str) -> str:
    """Return a name for a commit message, a pull request or the log of a pipeline.

    Letters, digits and `. _ - / + = ,` stay, and any other character becomes `?`. So the name cannot end its line or
    its block, mention a person or an issue, be a command of a runner or a word such as `[skip ci]`, or hide characters.
    """
    return "".join(char if char.isalnum() or char in _PLAIN else "?" for char in text)


def describe(value: object, *, typed: bool = False) -> str:
    """Describe a value in short: `the number 3`, `a list`.

    Args:
        value: any value of a document.
        typed: whether to say that a text is one.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"{'the text ' if typed else ''}`{clip_text(value)}`"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
    return f"a {type(value).__name__}"
