"""`--set APP.key=value` and how overrides of settings are merged, both as Helm does it.

Source: Helm's packages strvals and chart/common/util.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kaigen.diagnostics.errors import InputError

INDEX_MAX = 65536
"""Highest list index in an assignment, as in Helm."""

_INTEGER = re.compile(r"[-+]?[0-9]+")
_WORDS = {"true": True, "false": False, "null": None}


def parse_assignment(text: str) -> dict[str, dict[str, Any]]:
    """Return the values of one `--set APP.key=value`, parsed as Helm does.

    Dots separate keys (`\\.` is a dot), `[0]` is an entry of a list, `{a,b}` is a list, and a comma starts the next
    assignment (`\\,` is a comma). Whole numbers, `true`, `false` and `null` have their YAML types.

    Raises:
        InputError: the text is not an assignment.
    """
    try:
        tree = _Assignments(text).tree()
    except ValueError as error:
        raise InputError.of(
            "KG0704", f"`--set {text}` is not APP.key=value: {error}", hint="for example `--set qwen.storage.size=20Gi`"
        ) from None
    return tree


class _Entries(dict[int, Any]):
    """Entries of a list by index, merged into the list of earlier overrides."""


class _Assignments:
    """Parser of a `--set` argument."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def tree(self) -> dict[str, dict[str, Any]]:
        """Return all assignments.

        Raises:
            ValueError: the text is not an assignment.
        """
        tree: dict[str, Any] = {}
        while True:
            self._assign(tree)
            if self._at == len(self._text):
                break
        for app, values in tree.items():
            if not isinstance(values, dict) or isinstance(values, _Entries):
                raise ValueError(f"`{app}` names no setting")
        return tree

    def _until(self, stops: str) -> tuple[str, str]:
        """The text before the next of some characters, unescaped, and that character; `""` at the end."""
        found: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char in stops:
                return "".join(found), char
            if char == "\\":
                char = self._text[self._at : self._at + 1]
                self._at += 1
            found.append(char)
        self._at = min(self._at, len(self._text))
        return "".join(found), ""

    def _assign(self, into: dict[str, Any]) -> None:
        key, stop = self._until("=[,.")
        if not key:
            raise ValueError("a key is missing")
        if stop == "=":
            into[key] = self._value()
        elif stop == ".":
            inner = into.get(key)
            into[key] = inner if isinstance(inner, dict) and not isinstance(inner, _Entries) else {}
            self._assign(into[key])
        elif stop == "[":
            entries = into.get(key)
            into[key] = self._entry(entries if isinstance(entries, _Entries) else _Entries())
        else:
            raise ValueError(f"`{key}` has no value")

    def _entry(self, entries: _Entries) -> _Entries:
        index, stop = self._until("]")
        if not (stop and re.fullmatch("[0-9]{1,9}", index)):
            raise ValueError(f"`[{index}` is not an index of a list")
        number = int(index)
        if number > INDEX_MAX:
            raise ValueError(f"index {number} is too large")
        rest, stop = self._until("[.=")
        if rest or not stop:
            raise ValueError(f"`[{index}]{rest}` has no value")
        if stop == "=":
            entries[number] = self._value()
        elif stop == "[":
            inner = entries.get(number)
            entries[number] = self._entry(inner if isinstance(inner, _Entries) else _Entries())
        else:
            inner = entries.get(number)
            entries[number] = inner if isinstance(inner, dict) and not isinstance(inner, _Entries) else {}
            self._assign(entries[number])
        return entries

    def _value(self) -> Any:
        if self._text[self._at : self._at + 1] != "{":
            return _typed(self._until(",")[0])
        self._at += 1
        items = []
        while True:
            item, stop = self._until(",}")
            if not stop:
                raise ValueError("a list must end with `}`")
            items.append(_typed(item))
            if stop == "}":
                if self._text[self._at : self._at + 1] == ",":
                    self._at += 1
                return items


def _typed(text: str) -> Any:
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(text) and (text == "0" or text[0] != "0") and -(2**63) <= int(text) < 2**63:
        return int(text)
    return text


def merge_overrides(base: Any, over: Any) -> Any:
    """Return two overrides merged; null is kept, because it removes the default."""
    if isinstance(over, _Entries):
        entries = list(base) if isinstance(base, list) else []
        for index, value in over.items():
            entries += [None] * (index + 1 - len(entries))
            entries[index] = merge_overrides(entries[index], value)
        return entries
    if isinstance(over, Mapping):
        start = dict(base) if isinstance(base, Mapping) else {}
        for key, value in over.items():
            start[key] = merge_overrides(start.get(key), value)
        return start
    return over
