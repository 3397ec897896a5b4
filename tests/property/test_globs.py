"""Globs of tenants: kaigen's check agrees with the patterns of admission policies, and takes linear time."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kaigen.config.globs import bucket_pattern, glob_pattern, is_bucket_granted, is_granted

GLOBS = st.lists(st.text("ab/*?, .", max_size=8), max_size=3)
TEXTS = st.text("ab/, .\n", max_size=10)


@given(GLOBS, TEXTS)
@example(["*ab*b"], "aabab")
@example(["*a,a*"], "aa,a,a")
@example(["*?a*"], "aba")
def test_a_glob_matches_what_its_pattern_matches(globs: list[str], text: str) -> None:
    assert is_granted(text, globs) == (re.fullmatch(glob_pattern(globs), text) is not None)


@given(GLOBS, st.sampled_from(["s3://", "gs://", "S3://", ""]), TEXTS)
def test_a_bucket_is_granted_if_its_pattern_matches(globs: list[str], scheme: str, text: str) -> None:
    uris = [f"s3://{glob}" for glob in globs]
    expected = re.fullmatch(bucket_pattern(uris), scheme + text) is not None
    assert is_bucket_granted(scheme + text, uris) == expected


@pytest.mark.parametrize(
    ("glob", "text"),
    [
        ("*a" * 40, "a" * 5_000 + "b"),
        ("*ab" * 40 + "*", "ab" * 39 + "a" * 5_000),
        ("*/*/*/*/*/*/*/*/*/*.x", "/" * 5_000),
        ("?*" * 40 + ",", "a" * 5_000),
    ],
)
def test_many_stars_do_not_try_all_ways_to_split_a_text(glob: str, text: str) -> None:
    # A pattern that backtracks tries more than 10^20 ways.
    assert not is_granted(text, [glob])
    assert not is_bucket_granted(f"s3://{text} ", [f"s3://{glob}"])
