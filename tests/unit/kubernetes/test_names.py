"""Keys of labels and annotations."""

from __future__ import annotations

import pytest

from kaigen.kubernetes.names import is_qualified


@pytest.mark.parametrize(
    "key", ["a", "A", "a_b.c-d", "a" * 63, "x/a", "x.y/A", "1/1", f"{'x' * 253}/a", f"x/{'a' * 63}"]
)
def test_a_key_is_a_name_with_or_without_a_dns_prefix(key: str) -> None:
    assert is_qualified(key) is True


@pytest.mark.parametrize(
    "key", ["", "/", "a/", "/a", "-a", "a-", "a b", "a" * 64, f"{'x' * 254}/a", f"x/{'a' * 64}", "X/a", "x/y/a", "a\n"]
)
def test_other_texts_are_no_keys(key: str) -> None:
    assert is_qualified(key) is False
