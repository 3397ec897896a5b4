"""kaigen's regular expressions match the same texts as RE2, which Helm and Kubernetes use."""

from __future__ import annotations

import re2
from hypothesis import assume, given
from hypothesis import strategies as st

from kaigen.regex.parser import PatternError
from kaigen.regex.pattern import Pattern

# Without `\B`, which the C++ library also finds between the bytes of a character, and without letters of three forms,
# such as the sign for kelvin, about which it and Go differ.
_ALPHABET = "aAbk-_0 \n\u00e9\u00c9\u0663"
_ATOMS = st.one_of(
    st.sampled_from("aAbk0-_\u00e9.^${|"),
    st.sampled_from([r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\A", r"\z", r"\x61", r"\.", r"\n"]),
    st.sampled_from(["[ab]", "[^a]", "[a-k_-]", "[]a]", "{1", "(?i)", "(?s)", "(?-i)"]),
    st.sampled_from((r"[^\d\s]", r"[\W0]")),
)
_QUANTIFIERS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{0,2}", "{1,}", "{0}"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.lists(inner, max_size=4).map("".join)
    groups = st.builds("{}{}){}".format, st.sampled_from(["(", "(?:", "(?i:", "(?s-i:"]), joined, _QUANTIFIERS)
    return st.one_of(
        joined, groups, st.builds("{}|{}".format, inner, inner), st.builds("({}){}".format, inner, _QUANTIFIERS)
    )


_PATTERNS = st.recursive(st.builds("{}{}".format, _ATOMS, _QUANTIFIERS), _grown, max_leaves=8)


def _re2(pattern: str) -> object:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


@given(_PATTERNS, st.lists(st.text(_ALPHABET, max_size=8), min_size=1, max_size=8))
def test_the_same_texts_match_as_in_re2(pattern: str, texts: list[str]) -> None:
    try:
        own = Pattern(pattern)
    except PatternError:
        assume(False)
    theirs = _re2(pattern)
    for text in texts:
        assert own.search(text) is (theirs.search(text) is not None), (pattern, text)  # type: ignore[attr-defined]


@given(st.text("ab(){}[]|*+?.^$\\-,:<>!=P1dZxi\u00e9", max_size=12))
def test_what_is_accepted_is_a_pattern_of_re2(pattern: str) -> None:
    try:
        own = Pattern(pattern)
    except PatternError:
        return
    theirs = _re2(pattern)
    for text in ("", "a", "ab", "b1", "-,", "\u00e9", "\n"):
        assert own.search(text) is (theirs.search(text) is not None), (pattern, text)  # type: ignore[attr-defined]
