"""Files whose names end in .json."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.diagnostics.diagnostic import Mark
from tests.unit.yaml.texts import load, problems, read


def test_json_is_read_with_positions() -> None:
    text = '{\n\t"kind": "Job",\r\n\t"a": [1, -2.5e3, true, null, "\\ud83d\\ude00\\/"]\n}\n'
    (document,), found = read(text, path="a.JSON")
    assert found == []
    assert document.data == {"kind": "Job", "a": [1, -2500.0, True, None, "😀/"]}
    assert document.kind == "Job"
    assert document.mark(["a", 1]) == Mark("a.JSON", 3, 11, 6, text.split("\n")[2])
    assert document.mark(["kind"], key=True) == Mark("a.JSON", 2, 2, 6, '\t"kind": "Job",')


def test_a_key_of_any_length_is_read() -> None:
    assert load('{"' + "k" * 5000 + '": 1}', path="a.json") == {"k" * 5000: 1}


def test_words_of_yaml_are_text_in_json() -> None:
    text = '{"<<": "yes", "a": "~", "b": "{{ x }}"}'
    assert load(text, path="a.json") == json.loads(text)


def test_an_empty_file_has_no_document() -> None:
    assert read(" \n", path="a.json") == ([], [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,}', "1:9 KG0121 not JSON: a value is expected before `}`"),
        ("[1, 2,]", "1:7 KG0121 not JSON: a value is expected before `]`"),
        ("[1 2]", "1:4 KG0121 not JSON: `,` or `]` is expected"),
        ('{"a": 1\n "b": 2}', "2:2 KG0121 not JSON: `,` or `}` is expected"),
        ("{'a': 1}", "1:2 KG0121 not JSON: a key must be in double quotes"),
        ("{a: 1}", "1:2 KG0121 not JSON: a key must be in double quotes"),
        ('{"a" 1}', "1:6 KG0121 not JSON: `:` is expected after a key"),
        ("['a']", "1:2 KG0121 not JSON: text in single quotes"),
        ("// x\n{}", "1:1 KG0121 not JSON: a comment"),
        ('{ # x\n"a": 1}', "1:3 KG0121 not JSON: a comment"),
        ('{"a": [1, 2}', "1:12 KG0121 not JSON: `,` or `]` is expected"),
        ('{"a": [1, 2', "1:7 KG0121 not JSON: `[` is never closed"),
        ('{"a": 1', "1:1 KG0121 not JSON: `{` is never closed"),
        ("{", "1:1 KG0121 not JSON: `{` is never closed"),
        ('{"a":', "1:6 KG0121 not JSON: the text ends where a value is expected"),
        ('"abc', "1:1 KG0121 not JSON: a string without its closing quote"),
        ('"a\nb"', "1:3 KG0121 not JSON: a line end or control character inside a string"),
        ('"\\x"', "1:2 KG0121 not JSON: an invalid escape"),
        ("[NaN]", "1:2 KG0121 not JSON: `NaN` is not a value"),
        ("[01]", "1:2 KG0121 not JSON: `01` is not a value"),
        ("[True]", "1:2 KG0121 not JSON: `True` is not a value"),
        ("{} {}", "1:4 KG0121 not JSON: more text after the end of the value"),
        ("[" * 5000, "1:101 KG0133 more than 100 levels of nesting"),
        ('{"a": 1, "a": 2}', "1:10 KG0130 duplicate key `a`, first on line 1"),
        ('["\\ud800"]', "1:2 KG0120 an escape produces half a surrogate pair, which is not allowed"),
        ("[1e999]", "1:2 KG0141 `1e999` is too large for a number"),
        ("[18446744073709551616]", "1:2 KG0142 `18446744073709551616` does not fit into 64 bits"),
    ],
)
def test_invalid_json_is_reported_at_the_mistake(text: str, problem: str) -> None:
    assert problems(text, path="a.json") == [problem]


def refuse(constant: str) -> None:
    raise ValueError(constant)


_PIECES = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        '"',
        '"a"',
        '"\\n"',
        "1",
        "-0",
        "2.5",
        "1e3",
        "0x1",
        "true",
        "null",
        " ",
        "\n",
        "\t",
        "é",
    ]
)


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_json_is_accepted_if_the_standard_library_accepts_it(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=refuse)
    except ValueError:
        expected = ...
    documents, found = read(text, path="a.json")
    refused = any(item.code == "KG0121" for item in found) or not text.strip()
    assert refused == (expected is ...)
    if documents and not found:
        assert documents[0].data == expected
