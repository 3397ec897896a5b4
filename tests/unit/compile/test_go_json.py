"""Numbers and text in JSON as Go writes them; tests/property/test_emitter.py compares them with a real Helm."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.go_json import go_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (100.0, "100"),
        (-12.5, "-12.5"),
        (0.05, "0.05"),
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (-0.00000015, "-1.5e-7"),
        (1e-10, "1e-10"),
        (2**53, "9007199254740992"),
        (-(2**53), "-9007199254740992"),
        (2**53 + 1, "9007199254740992"),
        (-(2**53) - 1, "-9007199254740992"),
        (2**63 - 1, "9223372036854776000"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.25e22, "1.25e+22"),
        (1e100, "1e+100"),
        (123456789.5, "123456789.5"),
    ],
)
def test_numbers_are_written_as_64_bit_floats(value: float, expected: str) -> None:
    assert go_json(value) == expected
    assert go_json({"a": [value]}) == f'{{"a":[{expected}]}}'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<&>", '"\\u003c\\u0026\\u003e"'),
        ("a\u2028b\u2029", '"a\\u2028b\\u2029"'),
        ('"\\/\n\t\x01', '"\\"\\\\/\\n\\t\\u0001"'),
        ("naïve 🚀", '"naïve 🚀"'),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ({"b": 1, "a": [None, {}], "B": []}, '{"B":[],"a":[null,{}],"b":1}'),
        ({"b": 1e-7, "a": {"d": "<", "c": False}}, '{"a":{"c":false,"d":"\\u003c"},"b":1e-7}'),
    ],
)
def test_text_and_trees_are_written_without_spaces_and_with_sorted_keys(value: Any, expected: str) -> None:
    assert go_json(value) == expected
