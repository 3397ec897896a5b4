"""Globs of grants: what they match as checks, and as patterns of admission policies."""

from __future__ import annotations

import re

import pytest

from kaigen.config.globs import (
    NOTHING,
    entry_pattern,
    glob_pattern,
    host_pattern,
    is_entry_granted,
    is_granted,
    is_host_granted,
    pattern_of,
)


@pytest.mark.parametrize(
    ("value", "globs", "expected"),
    [
        ("a", ["a"], True),
        ("ab", ["a"], False),
        ("ba", ["a"], False),
        ("a", ["b", "a"], True),
        ("a", [], False),
        ("a/b", ["*"], True),
        ("", ["*"], True),
        ("", ["?"], False),
        ("a", ["?"], True),
        ("a b", ["*"], False),
        ("a,b", ["a?b"], False),
        ("axb", ["a?b"], True),
        ("abab", ["a*ab"], True),
        ("aab", ["a*ab"], True),
        ("ab", ["a*ab"], False),
        ("a1b2c", ["a*b*c"], True),
        ("a1c", ["a*b*c"], False),
        ("abcbc", ["*bc"], True),
        ("a.b", ["a.b"], True),
        ("axb", ["a.b"], False),
        ("ab", ["a**b"], True),
    ],
)
def test_a_glob_matches_the_whole_of_a_text_without_blanks_and_commas(
    value: str, globs: list[str], expected: bool
) -> None:
    assert is_granted(value, globs) is expected
    assert (re.fullmatch(glob_pattern(globs), value) is not None) is expected


def test_patterns_of_several_globs_are_sorted_and_each_is_there_once() -> None:
    assert glob_pattern(["b", "a", "b"]) == "a|b"
    assert glob_pattern(["*"]) == r"[^\t\n\r ,]*"
    assert pattern_of("a?.*", "[x]") == r"a[x]\.[x]*"
    assert [glob_pattern([]), host_pattern([]), entry_pattern([])] == [NOTHING] * 3
    assert host_pattern(["b", "a"]) == "a|b"
    assert entry_pattern(["b", "a"]) == r"a=[\s\S]*|b=[\s\S]*"


@pytest.mark.parametrize(
    ("host", "globs", "expected"),
    [
        ("a.example", ["*.example"], True),
        ("a.example", ["?.example"], True),
        ("a.example.org", ["*.example"], False),
        (".*", [".*"], True),
        ("(a|b)", ["*"], False),
        ("a/b", ["*"], False),
        ("a/b", ["a/b"], False),
        ("A-1_x.example", ["*"], True),
        ("a", [], False),
    ],
)
def test_a_host_is_no_regular_expression(host: str, globs: list[str], expected: bool) -> None:
    assert is_host_granted(host, globs) is expected
    assert (re.fullmatch(host_pattern(globs), host) is not None) is expected


@pytest.mark.parametrize(
    ("key", "value", "globs", "expected"),
    [
        ("a/b", "x y", ["a/*"], True),
        ("a/b", "x", ["a/b=x"], True),
        ("a/b", "x", ["a/b=y", "a/b=?"], True),
        ("a/b", "x", ["a/b=y"], False),
        ("a/b", "x y", ["a/b=*"], False),
        ("a/b", "x", ["a/b="], False),
        ("a/b", "", ["a/b="], True),
        ("a/b", "x=y", ["a/b=x=y"], True),
        ("c", "x", ["a", "b=x"], False),
        ("c", "x", [], False),
    ],
)
def test_an_entry_is_granted_by_its_key_or_with_its_value(
    key: str, value: str, globs: list[str], expected: bool
) -> None:
    assert is_entry_granted(key, value, globs) is expected
    assert (re.fullmatch(entry_pattern(globs), f"{key}={value}") is not None) is expected


def test_the_value_of_an_entry_may_be_a_number() -> None:
    assert is_entry_granted("a", 1, ["a=1"])
