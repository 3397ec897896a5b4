"""YAML text in a document is parsed like a file, with positions in the outer file."""

from __future__ import annotations

import pytest

from kaigen.diagnostics.collector import Diagnostics
from kaigen.dialects.kaito.config_file import parse_embedded
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source


def outer(text: str) -> Document:
    found = Diagnostics()
    (document,) = parse(Source("a.yaml", text), found)
    assert not len(found)
    return document


def embedded(text: str, *path: str) -> tuple[Document | None, list[str]]:
    """Return the only document at a path, and its problems."""
    found = Diagnostics()
    documents = parse_embedded(outer(text), path, found)
    return documents[0] if documents else None, [f"{item.mark} {item.code} {item.path}" for item in found]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("data:\n  file: |\n    a: 1\n    b: [x]\n", "a.yaml:4:5"),
        ("data:\n  file: |-   # comment\n\n\n    a: 1\n    b: [x]\n", "a.yaml:6:5"),
        ("data:\r\n  file: |\r\n    a: 1\r\n    b: [x]\r\n", "a.yaml:4:5"),
        ("data:\n  file: |2\n      a: 1\n      b: [x]\n", "a.yaml:4:7"),
        ("data: {}\n---\n", ""),
        ("data:\n  file: >\n    a: 1\n\n    b: [x]\n", "a.yaml:2:3"),
        ('data:\n  file: "a: 1\\nb: [x]"\n', "a.yaml:2:3"),
        ("data:\n  file: &text |\n    a: 1\n    b: [x]\nother: *text\n", "a.yaml:4:5"),
    ],
)
def test_positions_are_those_of_the_outer_file(text: str, position: str) -> None:
    document, errors = embedded(text, "data", "file")
    assert errors == []
    if not position:
        assert document is None
        return
    assert document is not None
    assert document.data == {"a": 1, "b": ["x"]}
    assert str(document.mark(("b",), key=True)) == position
    assert document.raw(("a",)) == "1"


def test_the_marked_text_is_the_line_of_the_outer_file() -> None:
    document, _ = embedded("data:\n  file: |\n    a: 1\n    bee: [x]\n", "data", "file")
    assert document is not None
    mark = document.mark(("bee",), key=True)
    assert mark.text == "    bee: [x]"
    assert mark.text[mark.column - 1 :][: mark.length] == "bee"


def test_a_repeated_key_is_an_error_at_its_line() -> None:
    document, errors = embedded("data:\n  file: |\n    a: 1\n    a: 2\n", "data", "file")
    assert document is not None
    assert errors == ["a.yaml:4:5 KG0130 data.file.a"]


def test_messages_name_lines_of_the_outer_file() -> None:
    found = Diagnostics()
    parse_embedded(outer("data:\n  file: |\n    a: 1\n    a: 2\n"), ("data", "file"), found)
    (item,) = found
    assert item.message.endswith("first on line 3")


def test_a_word_that_yaml_1_1_reads_as_a_boolean_is_an_error_at_its_line() -> None:
    _, errors = embedded("data:\n  file: |\n    a: 1\n    b: off\n", "data", "file")
    assert errors == ["a.yaml:4:8 KG0140 data.file.b"]


def test_broken_yaml_is_an_error_at_its_line() -> None:
    document, errors = embedded("data:\n  file: |\n    a: [1\n    b: 2\n", "data", "file")
    assert document is None
    assert [error.split(":")[1] for error in errors] == ["3"]


def test_every_document_is_returned() -> None:
    documents = parse_embedded(
        outer("data:\n  file: |\n    a: 1\n    ---\n    b: 2\n"), ("data", "file"), Diagnostics()
    )
    assert [document.data for document in documents] == [{"a": 1}, {"b": 2}]
    assert str(documents[1].mark(("b",), key=True)) == "a.yaml:5:5"


@pytest.mark.parametrize("text", ["data:\n  file: |\n", "data:\n  file: {a: 1}\n", "data: 1\n"])
def test_there_is_no_document_without_text(text: str) -> None:
    assert embedded(text, "data", "file") == (None, [])
