"""Regular expressions: which ones are accepted, what they match, and how long that takes."""

from __future__ import annotations

import time

import pytest

from kaigen.regex.parser import PatternError
from kaigen.regex.pattern import Pattern, matches


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("b", ["abc"], ["", "ac", "B"]),
        ("^b$", ["b"], ["ab", "b\n", "\nb"]),
        ("a|^$", ["", "xa"], ["b"]),
        ("^(a|b|)c$", ["ac", "bc", "c"], ["abc"]),
        ("^a{2,3}$", ["aa", "aaa"], ["a", "aaaa"]),
        ("^a{2}$", ["aa"], ["a", "aaa"]),
        ("^a{2,}$", ["aa", "a" * 50], ["a"]),
        ("^(ab?)*$", ["", "aab", "abab"], ["ba"]),
        ("^a+?b??$", ["a", "aab"], ["b"]),
        ("^(a*)*$", ["", "aaa"], ["b"]),
        ("^a{$", ["a{"], ["a"]),
        ("^a{x}$", ["a{x}"], ["a"]),
        (".", ["a", "é", "\U0001f600"], ["", "\n"]),
        ("(?s)^.$", ["\n"], [""]),
        ("(?s:^.$)|^..$", ["\n", "ab"], ["\n\n"]),
        ("(?i)^straße$", ["STRAßE", "straße"], ["strasse"]),
        ("(?i:a)b", ["Ab"], ["AB"]),
        ("(?i)a(?-i:b)", ["Ab"], ["AB"]),
        ("a(?i)b", ["aB"], ["AB"]),
        (r"^\d\w\s$", ["1_ ", "1a\t"], ["٣a ", "1é ", "1a\u00a0", "1a\v"]),
        (r"^\D\W\S$", ["٣éb"], ["1éb"]),
        (r"^[\D]$", ["a", "\n"], ["1"]),
        (r"^[^\W_]+$", ["a1"], ["a_"]),
        (r"\bfoo\b", ["a foo.", "foo"], ["food", "a_foo"]),
        (r"\Boo\B", ["food"], ["foo"]),
        (r"\Aa\z", ["a"], ["ba", "a\n"]),
        ("^[]a-]+$", ["]a-"], ["b"]),
        ("^[^]]$", ["a"], ["]"]),
        ("^[a-c-e]$", ["b", "-", "e"], ["d"]),
        (r"^\x41\x{1F600}\.\/$", ["A\U0001f600./"], ["Ax./"]),
        (r"^[\x00-\x1f]$", ["\x1f"], [" "]),
        ("^(?:a)(?P<n>b)(?<m>c)$", ["abc"], ["ab"]),
        ("", ["", "a"], []),
    ],
)
def test_a_pattern_matches(pattern: str, yes: list[str], no: list[str]) -> None:
    for text in yes:
        assert matches(pattern, text), (pattern, text)
    for text in no:
        assert not matches(pattern, text), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "a missing `)` at position 2"),
        ("a)", "unbalanced `)` at position 2"),
        ("[a", "a missing `]`"),
        ("[a-", "a missing `]`"),
        ("[b-a]", "reverse order"),
        (r"[\d-z]", "one end is a class"),
        ("[[:alpha:]]", "a class of POSIX"),
        ("*a", "nothing to repeat"),
        ("a|+", "nothing to repeat"),
        ("a**", "several quantifiers"),
        ("a++", "several quantifiers"),
        ("a{1}{2}", "several quantifiers"),
        ("a{,3}", "without a lower limit"),
        ("a{3,1}", "below the lower one"),
        ("a{1001}", "more than 1000 repetitions"),
        ("(a{1000}){1000}", "too large"),
        ("((((){1000}){1000}){1000}){1000}", "too large"),
        ("(" * 101 + ")" * 101, "more than 100 groups"),
        ("a" * 10_001, "more than 10,000 characters"),
        ("(?=a)", "lookahead"),
        ("(?!a)", "lookahead"),
        ("(?<=a)", "lookbehind"),
        ("(?<!a)", "lookbehind"),
        ("(?>a)", "unknown group"),
        ("(?#a)", "unknown group"),
        ("(?m)a", "unknown group"),
        ("(?P<a>a)(?P<a>b)", "second group"),
        (r"(a)\1", "backreference"),
        (r"(?P<a>a)(?P=a)", "unknown group"),
        (r"a\Z", r"`\Z`"),
        (r"\pL", "unknown escape"),
        (r"\u0041", "unknown escape"),
        (r"\_", "unknown escape"),
        (r"\é", "unknown escape"),
        ("\\", "unknown escape"),
        (r"\x{110000}", "no Unicode character"),
    ],
)
def test_a_pattern_is_refused(pattern: str, problem: str) -> None:
    started = time.process_time()
    with pytest.raises(PatternError, match=problem.replace("(", r"\(").replace(")", r"\)").replace("\\Z", r"\\Z")):
        Pattern(pattern)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "^(a?){50}a{50}$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){20}b"],
)
@pytest.mark.parametrize("length", [40, 100_000])
def test_a_catastrophic_pattern_ends(pattern: str, length: int) -> None:
    started = time.process_time()
    assert not matches(pattern, "a" * length + "!")
    assert time.process_time() - started < 1


def test_the_kept_places_are_bounded() -> None:
    pattern = Pattern("(a|b)*a(a|b){14}c")
    text = "".join("ab"[index * index * 7919 % 65537 & 1] for index in range(60_000))
    assert not pattern.search(text)
    assert pattern.search(f"{text}{'a' * 15}c")
    assert pattern._size <= 10_000
