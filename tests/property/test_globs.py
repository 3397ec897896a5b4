"""Globs of tenants: kaigen's check agrees with the patterns of admission policies, and takes linear time."""

from __future__ import annotations

import re

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from kaigen.config.globs import entry_pattern, glob_pattern, host_pattern, is_entry_granted, is_granted, is_host_granted
from kaigen.kubernetes.buckets import ANY_URI, BUCKET_URI, WEB_BUCKET, bucket_uris
from kaigen.tenancy.conditions.volumes import bucket_pattern, is_bucket_granted

GLOBS = st.lists(st.text("ab/*?, .", max_size=8), max_size=3)
TEXTS = st.text("ab/, .\n", max_size=10)


@given(GLOBS, TEXTS)
@example(["*ab*b"], "aabab")
@example(["*a,a*"], "aa,a,a")
@example(["*?a*"], "aba")
def test_a_glob_matches_what_its_pattern_matches(globs: list[str], text: str) -> None:
    assert is_granted(text, globs) == (re.fullmatch(glob_pattern(globs), text) is not None)


BUCKETS = st.lists(st.text("ab/*?.", max_size=8), max_size=3)
PATHS = st.lists(st.sampled_from(["a", "ab", "b", "aaa", ".", "..", "", "..a", "a..", "%2e", "a?b", "a#", "a b"]))


@given(
    BUCKETS,
    st.sampled_from(["s3", "gs", "S3", "s3a", "https", "HTTP", "abfs", "az", "ftp"]),
    st.sampled_from(["s3", "https", "abfss"]),
    st.one_of(PATHS.map("/".join), st.text("ab/.?#-", max_size=10)),
)
@example(["aaa/*"], "s3", "s3", "aaa/a/../../b")
@example(["aaa/*/b"], "s3", "s3", "aaa/../b")
@example(["*b"], "https", "https", "a?b")
@example(["a"], "https", "https", "a?../b")
def test_a_bucket_is_granted_if_both_patterns_match(globs: list[str], scheme: str, granted: str, path: str) -> None:
    uri, uris = f"{scheme}://{path}", [f"{granted}://{glob}" for glob in globs]
    expected = all(re2.search(f"^({pattern})$", uri) is not None for pattern in (BUCKET_URI, bucket_pattern(uris)))
    assert is_bucket_granted(uri, uris) == expected


@given(
    st.lists(
        st.sampled_from(
            ["s3", "gs", "S3A", "https", "://", "x", "/", "..", " ", '"', ",", ".s3.", "amazonaws.com", "\n", "\x85"]
        )
    ).map("".join)
)
@example("https://x.s3.amazonaws.com")
def test_the_uris_in_a_text_are_those_that_policies_find(text: str) -> None:
    found = [match[0] for match in re2.finditer(ANY_URI, text)]
    web = re2.compile(f"^({WEB_BUCKET})$")
    assert [*bucket_uris(text)] == [
        uri for uri in found if not uri.lower().startswith("http") or web.search(uri) is not None
    ]


@given(st.lists(st.text("ab/=*?, ", max_size=8), max_size=3), st.text("ab/", max_size=5), TEXTS)
@example(["a*b"], "a", "=b")
@example(["a*"], "a", "b, c")
@example(["*=*"], "a", "a=b")
@example(["a=?"], "a", "=")
def test_an_entry_is_granted_if_its_pattern_matches(globs: list[str], key: str, value: str) -> None:
    expected = re.fullmatch(entry_pattern(globs), f"{key}={value}") is not None
    assert is_entry_granted(key, value, globs) == expected


@given(st.lists(st.text("ab*?.~|", max_size=8), max_size=3), st.text("ab.~|/@ *", max_size=8))
@example(["*.a"], "~b|c.a")
@example(["*~a"], "~a")
@example(["*"], "")
def test_a_host_is_granted_if_its_pattern_matches(globs: list[str], host: str) -> None:
    assert is_host_granted(host, globs) == (re.fullmatch(host_pattern(globs), host) is not None)


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
    assert not is_entry_granted(text, text, [f"{glob}={glob}"])
