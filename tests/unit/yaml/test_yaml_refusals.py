"""Valid YAML that kaigen rejects: duplicate keys, endless aliases, deep nesting, forbidden characters."""

from __future__ import annotations

import time

import pytest

from tests.unit.yaml.texts import load, problems, read


def test_a_duplicate_key_is_reported_at_the_second() -> None:
    (document,), (found,) = read("a:\n  size: 1\n  # more\n  'size': 2\n")
    assert (str(found.mark), found.code, found.path) == ("a.yaml:4:3", "KG0130", "a.size")
    assert found.message == "duplicate key `size`, first on line 2"
    assert document.data == {"a": {"size": 1}}


def test_every_duplicate_is_reported() -> None:
    assert problems("{a: 1, a: 2, b: 1, a: 3, <<: {}, <<: {}}") == [
        "1:8 KG0130 duplicate key `a`, first on line 1",
        "1:20 KG0130 duplicate key `a`, first on line 1",
        "1:34 KG0130 duplicate key `<<`, first on line 1",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("? [a]\n: b\n", "1:3 KG0131 a list cannot be a key"),
        ("{{a: b}: c}\n", "1:1 KG0117 templates are not expanded here, and unquoted `{{ … }}` is a mapping"),
        ("? {a: b}\n: c\n", "1:3 KG0131 a mapping cannot be a key"),
        ("name: {{ app }}\n", "1:7 KG0117 templates are not expanded here, and unquoted `{{ … }}` is a mapping"),
        ("a:\n  ? \n  : c\n", "2:4 KG0131 a key is missing before `:`"),
        ("<<: 1\n", "1:5 KG0138 `<<` merges a mapping or a list of mappings"),
        ("a: &a [1]\nb:\n  <<: [*a, {}]\n", "3:7 KG0138 `<<` merges a mapping or a list of mappings"),
    ],
)
def test_keys_must_be_strings(text: str, problem: str) -> None:
    assert problems(text) == [problem]


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a {b: {c: *a}}", "a: &a {b: &b [*a, *b]}", "&a {? *a : 1}"])
def test_an_alias_inside_its_own_value_is_rejected(text: str) -> None:
    documents, (found,) = read(text)
    assert documents == []
    assert found.code == "KG0135"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: &a [*a]", "1:8 *a"),
        ("&a {b: {c: *a}}", "1:12 *a"),
        ("a: &a\n  b: &b\n    - *b # *a\n", "3:7 *b"),
        ("a: &one\n  b: &b [1]\n  c: [*b, '*', *b, # *b\n    *one]\n", "4:5 *one"),
        ("a: &a {? *a : 1}", "1:10 *a"),
    ],
)
def test_the_mark_is_that_of_the_alias(text: str, place: str) -> None:
    _, (found,) = read(text)
    mark = found.mark
    assert mark is not None
    shown = mark.text[mark.column - 1 : mark.column - 1 + mark.length]
    assert f"{mark.line}:{mark.column} {shown}" == place


def test_an_alias_bomb_is_marked_where_it_exceeds_the_limit() -> None:
    _, (found,) = read(bomb(6, 10))
    assert found.mark is not None
    before = found.mark.text[: found.mark.column - 1]
    # Each of the first two adds 31,111 values to the 34,560 of the lines above.
    assert (found.mark.line, before, found.mark.length) == (6, "a5: &a5 [*a4, *a4, ", len("*a4"))


def bomb(levels: int, width: int) -> str:
    lines = ["a0: &a0 [x, x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join(lines) + "\n"


def test_an_alias_bomb_is_rejected_before_it_is_expanded() -> None:
    started = time.perf_counter()
    documents, (found,) = read(bomb(90, 10))
    assert (documents, found.code) == ([], "KG0134")
    assert time.perf_counter() - started < 2


def test_the_limit_of_aliases_covers_all_documents_of_a_text() -> None:
    documents, found = read("---\n".join([bomb(4, 20)] * 30))
    assert {item.code for item in found} == {"KG0134"}
    assert 0 < len(documents) < 30


def test_a_merge_key_bomb_is_rejected() -> None:
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 40)]
    assert read("\n".join(lines))[1][0].code == "KG0134"


def test_ordinary_aliases_stay_below_the_limit() -> None:
    text = "base: &base {" + ", ".join(f"k{n}: {n}" for n in range(50)) + "}\n"
    text += "".join(f"use{n}: *base\n" for n in range(500))
    data = load(text)
    assert isinstance(data, dict)
    assert len(data) == 501


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{a: " * 50_000, "- " * 50_000, "[" * 200 + "]" * 200, "? " * 300, "[[" * 5_000 + "\n---\n"]
)
def test_deep_nesting_is_rejected_without_recursion(text: str) -> None:
    documents, found = read(text)
    assert documents == []
    assert found[0].code == "KG0133"


def test_ninety_nine_levels_are_allowed() -> None:
    assert load("[" * 99 + "]" * 99) is not None


def test_nesting_through_aliases_counts() -> None:
    text = "a: &a " + "[" * 60 + "]" * 60 + "\nb: &b " + "[" * 60 + "*a" + "]" * 60 + "\n"
    assert [item.code for item in read(text)[1]] == ["KG0133"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: x\x00y\n", "1:5 KG0119 the control character U+0000 is not allowed"),
        ("a: 1\nb: \x1b[31m\n", "2:4 KG0119 the control character U+001B is not allowed"),
        ("a: é\x80\n", "1:5 KG0119 the control character U+0080 is not allowed"),
        ("a: \ud800\n", "1:4 KG0119 half a surrogate pair, U+D800 is not allowed"),
        ("a: \ufeffb\n", "1:4 KG0119 a byte order mark inside the text is not allowed"),
        ("a: \uffff\n", "1:4 KG0119 the control character U+FFFF is not allowed"),
    ],
)
def test_characters_that_yaml_does_not_allow_are_named(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_a_bad_character_breaks_only_its_own_document() -> None:
    documents, found = read("a: 1\n---\nb: \x07\n---\nc: 3\n")
    assert [document.data for document in documents] == [{"a": 1}, {"c": 3}]
    assert [str(item.mark) for item in found] == ["a.yaml:3:4"]
