"""Hypothesis strategies for text and JSON that a careless writer of YAML or templates would break."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

_FRAGMENTS = (
    *("{{", "}}", "{{-", "-}}", "{{/*", "*/}}", "{{ .Values.x }}", "{{ end }}", "`", "%", "%s", "%!d", "$(A)"),
    *("'", '"', "\\", "\n", "\n\n", "\r", "\r\n", "\t", " ", "  ", ": ", ":", " #", "#", "- ", "-", "---", "..."),
    *("yes", "no", "on", "null", "~", "true", "True", "0123", "0x1F", "1e3", "1_000", "12:30", ".5", "5.", "-0"),
    *("2001-01-01", ".inf", ".NaN", "<<", "=", "?", "? ", "!", "!!str", "&a", "*a", "|", ">", "|-", "@", ","),
    *("[", "]", "{", "}", "<b>&amp;", "é", "カ", "🚀", "\u2028", "\u2029", "\ufeff", "\u00a0", "\u200b", "\x00"),
    *("\x01", "\x1b", "word", "a b", "key: value", "  indented\nthen not", "text\n", "blank \n", "\ttab"),
)

UNSUPPORTED = "\x7f" + "".join(map(chr, range(0x80, 0xA0))) + "\u2028\u2029\ufffe\uffff"
"""Characters that Helm does not support in values."""


def examples(count: int) -> int:
    """Return how many examples a test has for which `count` is right where Hypothesis' default, 100, is for others."""
    return max(1, count * settings().max_examples // 100)


def texts(*, exclude: str = "", max_size: int = 12) -> st.SearchStrategy[str]:
    """Return any text, and text made of fragments that parsers often misread."""
    letters = st.characters(exclude_categories=["Cs"], exclude_characters=exclude)
    fragments = [text for text in _FRAGMENTS if not set(text) & set(exclude)]
    glued = st.lists(st.sampled_from(fragments) | letters, max_size=5).map("".join)
    return st.text(letters, max_size=max_size) | glued


def helm_texts() -> st.SearchStrategy[str]:
    """Return text that Helm supports in values."""
    return texts(exclude=UNSUPPORTED)


def helm_keys() -> st.SearchStrategy[str]:
    """Return keys that Helm supports in values."""
    return helm_texts().filter(lambda text: text != "<<")


def floats() -> st.SearchStrategy[float]:
    """Return finite numbers, including those at which the notation changes; without -0.0."""
    edges = [0.1, 1e-5, 1e-6, 9.99e-7, 1e-7, 1e15, 1e16, 1e20, 1e21, 1.5e21, 1e22, 1e100, 5e-324, 1.7e308, 2.0**53]
    every = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number or 0.0)
    return every | st.sampled_from([*edges, *(-edge for edge in edges)])


def json_values(
    text: st.SearchStrategy[str],
    keys: st.SearchStrategy[str] | None = None,
    *,
    nulls: bool = False,
    exact: bool = True,
    max_leaves: int = 8,
) -> st.SearchStrategy[Any]:
    """Any JSON.

    Args:
        text: its strings.
        keys: its keys; like `text` when None.
        nulls: with nulls.
        exact: no whole number that a 64-bit float cannot hold.
        max_leaves: as of `hypothesis.strategies.recursive`.
    """
    most = 2**53 if exact else 2**63 - 1
    leaves: st.SearchStrategy[Any] = text | st.booleans() | st.integers(-most, most) | st.integers(-20, 20) | floats()
    if nulls:
        leaves |= st.none()
    keys = text if keys is None else keys
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=max_leaves,
    )
