"""Values that Helm would change or reject are reported at their fields."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.helm_values import UnsupportedValue, unsupported_values

MAX = 2**53


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\x7fb", UnsupportedValue((), "KG0315", "Helm does not support the character U+007F", "delete it")),
        ("\x85", UnsupportedValue((), "KG0315", "Helm does not support the character U+0085", "delete it")),
        ("\x9f", UnsupportedValue((), "KG0315", "Helm does not support the character U+009F", "delete it")),
        ("\u2028", UnsupportedValue((), "KG0315", "Helm does not support the character U+2028", "delete it")),
        ("\u2029", UnsupportedValue((), "KG0315", "Helm does not support the character U+2029", "delete it")),
        ("\ufffe", UnsupportedValue((), "KG0315", "Helm does not support the character U+FFFE", "delete it")),
        ("\ud800", UnsupportedValue((), "KG0315", "Helm does not support the character U+D800", "delete it")),
        ({"a": ["\x80"]}, UnsupportedValue(("a", 0), "KG0315",
         "Helm does not support the character U+0080", "delete it")),
        ({"\x80": 1}, UnsupportedValue(("\x80",), "KG0315",
         "Helm does not support the character U+0080", "delete it")),
        ({"a": {"<<": 1}}, UnsupportedValue(("a", "<<"), "KG0315",
         "Helm would merge what is under the key `<<`", "rename it")),
        ({"<<": [MAX * 2]}, None),
        ((1, MAX * 2), UnsupportedValue((1,), "KG0312", f"Helm would round {MAX * 2}", "quote it")),
        (MAX + 1, UnsupportedValue((), "KG0312", f"Helm would round {MAX + 1}", "quote it")),
        (-MAX - 1, UnsupportedValue((), "KG0312", f"Helm would round {-MAX - 1}", "quote it")),
        ({"a": -0.0}, UnsupportedValue(("a",), "KG0312", "Helm would round -0.0", "write 0")),
    ],
)  # fmt: skip
def test_a_value_that_helm_changes_is_reported(value: Any, expected: UnsupportedValue | None) -> None:
    found = list(unsupported_values(value))
    if expected is None:
        assert [each.path for each in found] == [("<<",), ("<<", 0)]
    else:
        assert found == [expected]


@pytest.mark.parametrize(
    "value", ["", "a~ \u00a0\u2027\ufffd", 0, 0.0, -0.5, MAX, -MAX, True, None, [], {}, {"<": "<<"}]
)
def test_a_value_that_helm_keeps_is_not_reported(value: Any) -> None:
    assert list(unsupported_values({"a": [value]}, ("spec",))) == []


def test_a_path_starts_where_the_caller_says() -> None:
    (found,) = unsupported_values({"a": "\x80"}, ("spec", 0))
    assert found.path == ("spec", 0, "a")
