"""Globs of what tenants are granted, as patterns of admission policies and as checks of kaigen.

`*` matches any text without blanks and commas, also an empty one, and `?` one character of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

NOTHING = r"[^\s\S]"
"""A pattern that matches no text."""
_ANY = r"[\s\S]*"
_TEXT = r"[^\t\n\r ,]"
_KEY = r"[^\t\n\r ,=]"
_HOST = r"[A-Za-z0-9*._-]"


def glob_pattern(globs: Iterable[str]) -> str:
    """Return a pattern of RE2 for the whole of a text that one of the globs matches."""
    patterns = {pattern_of(glob) for glob in globs}
    return "|".join(sorted(patterns)) if patterns else NOTHING


def host_pattern(globs: Iterable[str]) -> str:
    """Return a pattern of RE2 for the whole of a host that one of the globs matches."""
    patterns = {pattern_of(glob, _HOST) for glob in globs if re.fullmatch(rf"({_HOST}|\?)*", glob)}
    return "|".join(sorted(patterns)) if patterns else NOTHING


def is_host_granted(host: str, globs: Iterable[str]) -> bool:
    """Return whether one of the globs matches a host, in linear time; a regular expression is not a host."""
    return re.fullmatch(f"{_HOST}*", host) is not None and is_granted(host, globs)


def entry_pattern(globs: Iterable[str]) -> str:
    """Return a pattern of RE2 for `KEY=VALUE` of the labels and annotations that one of the globs matches.

    A glob is `KEY`, for any value, or `KEY=VALUE`.
    """
    patterns = set()
    for glob in globs:
        key, sign, value = glob.partition("=")
        patterns.add(f"{pattern_of(key, _KEY)}={pattern_of(value) if sign else _ANY}")
    return "|".join(sorted(patterns)) if patterns else NOTHING


def is_entry_granted(key: str, value: object, globs: Iterable[str]) -> bool:
    """Return whether one of the globs, `KEY` or `KEY=VALUE`, matches a label or an annotation, in linear time."""
    for glob in globs:
        name, sign, content = glob.partition("=")
        if is_granted(key, [name]) and (not sign or is_granted(str(value), [content])):
            return True
    return False


def is_granted(value: str, globs: Iterable[str]) -> bool:
    """Return whether one of the globs matches the whole of a text, in linear time."""
    return any(_compiled(glob).fullmatch(value) for glob in globs)


def pattern_of(text: str, character: str = _TEXT) -> str:
    """Return the pattern of a glob, whose stars and question marks match a class of characters."""
    steps = {"*": f"{character}*", "?": character}
    return "".join(steps.get(each) or re.escape(each) for each in text)


@lru_cache(maxsize=1024)
def _compiled(glob: str) -> re.Pattern[str]:
    """Return a pattern that tries each place of a text once.

    If a glob matches at all, it also matches with the first place of each piece between two stars, because a star
    matches whatever it would have to skip. An atomic group tries no other place. RE2, which the patterns of policies
    are for, needs none.
    """
    first, *rest = glob.split("*")
    if not rest:
        return re.compile(pattern_of(first))
    *middle, last = rest
    pieces = "".join(f"(?>{_TEXT}*?{pattern_of(piece)})" for piece in middle if piece)
    return re.compile(f"{pattern_of(first)}{pieces}{_TEXT}*{pattern_of(last)}")
