"""Phrases of messages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kaigen.core.text import clip_text, describe, plural, printable, series, some_of


@pytest.mark.parametrize(
    ("count", "nouns", "text"),
    [
        (0, ("file",), "0 files"),
        (1, ("file",), "1 file"),
        (2, ("file",), "2 files"),
        (0, ("entry", "entries"), "0 entries"),
        (1, ("entry", "entries"), "1 entry"),
    ],
)
def test_a_count_agrees_with_its_noun(count: int, nouns: Sequence[str], text: str) -> None:
    assert plural(count, *nouns) == text


@pytest.mark.parametrize(
    ("items", "word", "text"),
    [
        ([], "and", ""),
        (["a"], "and", "a"),
        (["a", "b"], "and", "a and b"),
        (["a", "b", "c"], "and", "a, b and c"),
        (["a", "b", "c", "d"], "or", "a, b, c or d"),
    ],
)
def test_a_list_reads_as_a_phrase(items: Sequence[str], word: str, text: str) -> None:
    assert series(items, word) == text


@pytest.mark.parametrize(("most", "text"), [(1, "a, …"), (2, "a, b, …"), (3, "a, b, c"), (4, "a, b, c")])
def test_a_long_list_ends_in_an_ellipsis(most: int, text: str) -> None:
    assert some_of(["a", "b", "c"], most) == text


def test_only_a_text_over_the_limit_is_clipped() -> None:
    assert clip_text("a" * 60) == "a" * 60
    assert clip_text("a" * 61) == "a" * 57 + "…"
    assert clip_text("abcdef", 5) == "ab…"


@pytest.mark.parametrize(
    ("text", "keep", "shown"),
    [("plain", "", "plain"), ("a\x1b[1mb", "", "a?[1mb"), ("a\tb\nc", "\t\n", "a\tb\nc"), ("a\tb", "", "a?b")],
)
def test_what_a_terminal_would_obey_is_replaced(text: str, keep: str, shown: str) -> None:
    assert printable(text, keep=keep) == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (3, "the number 3"),
        (1.5, "the number 1.5"),
        ("x", "`x`"),
        ("x" * 61, f"`{'x' * 57}…`"),
        ({"a": 1}, "a mapping"),
        ([1], "a list"),
        ((1,), "a list"),
        (b"x", "a bytes"),
    ],
)
def test_a_value_is_described_in_short(value: object, text: str) -> None:
    assert describe(value) == text


def test_a_text_where_another_type_belongs_is_called_a_text() -> None:
    assert describe("3", typed=True) == "the text `3`"
    assert describe(3, typed=True) == "the number 3"
