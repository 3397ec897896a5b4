"""Values of a text are moved into blocks; everything else stays as it was written."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.kinds.spelling import Move, respell
from kaigen.yaml.moves import move_values
from kaigen.yaml.sources import Source

WRAP = Move(("a", "secret"), ("a", "secret", "name"))
KEY = Move(("a", "key"), ("a", "secret", "key"))
RENAME = Move(("a", "secretName"), ("a", "secret", "name"))
ENTRY = Move(("a", 1), ("a", 1, "name"))


def moved(text: str, *moves: Move, file: str = "a.yaml") -> str | None:
    def expected(_: int, data: Any) -> Any:
        return respell(data, [*moves])

    return move_values(Source(file, text), {0: [(move.old, move.new) for move in moves]}, expected)


@pytest.mark.parametrize(
    ("text", "moves", "new"),
    [
        ("a:\n  secret: x  # why\n", [WRAP], "a:\n  secret: {name: x}  # why\n"),
        ("a: {secret: 'x', b: 1}\n", [WRAP], "a: {secret: {name: 'x'}, b: 1}\n"),
        ("a: {secretName: x}\n", [RENAME], "a: {secret: {name: x}}\n"),
        ("a:\n  secret: x\n  key: k\nb: 1\n", [KEY, WRAP], "a:\n  secret: {name: x, key: k}\nb: 1\n"),
        ("a:\n  key: k # why\n  secret: x\n", [KEY, WRAP], "a:\n  # why\n  secret: {name: x, key: k}\n"),
        ("a: {key: k, secret: x}\n", [KEY, WRAP], "a: {secret: {name: x, key: k}}\n"),
        ("a: {secret: x, key: k}\n", [KEY, WRAP], "a: {secret: {name: x, key: k}}\n"),
        ("a: {key: k}\n", [KEY], "a: {secret: {key: k}}\n"),
        ("a:\n  - x\n  - y # why\n", [ENTRY], "a:\n  - x\n  - {name: y} # why\n"),
        ("a: {secretName: x}\r\nb: 1\r\n", [RENAME], "a: {secret: {name: x}}\r\nb: 1\r\n"),
    ],
)
def test_comments_and_layout_stay(text: str, moves: list[Move], new: str) -> None:
    assert moved(text, *moves) == new


def test_json_stays_json() -> None:
    assert moved('{"a": {"secretName": "x"}}', RENAME, file="a.json") == '{"a": {"secret": {"name": "x"}}}'


@pytest.mark.parametrize(
    "text",
    ["b: &x y\na: {secret: *x}\n", "a:\n  secret: >\n    x\n"],
)
def test_a_text_is_not_changed_where_something_else_would_change(text: str) -> None:
    assert moved(text, WRAP) is None
