"""Documents of a text: their data and the positions of their values."""

from __future__ import annotations

import pytest

from kaigen.diagnostics.diagnostic import Mark
from tests.unit.yaml.texts import SPEC, load, problems, read


def test_empty_documents_of_a_text_do_not_count() -> None:
    documents, found = read("---\n---\n# nothing\n---\na: 1\n---\n~\n---\nb: 2\n...\n")
    assert found == []
    assert [(document.index, document.data) for document in documents] == [(0, {"a": 1}), (1, None), (2, {"b": 2})]


@pytest.mark.parametrize("text", ["", "\n\n", "# only this\n", "---\n", "--- # x\n...\n", "\ufeff", "%YAML 1.2\n---\n"])
def test_a_text_without_content_has_no_document(text: str) -> None:
    assert read(text) == ([], [])


def test_a_broken_document_does_not_hide_the_others() -> None:
    documents, found = read("a: 1\n---\nb: [1\n---\nc: 3\n...\nd: 'x\n---\ne:\n  f: 5\n")
    assert [(document.index, document.data) for document in documents] == [
        (0, {"a": 1}),
        (2, {"c": 3}),
        (4, {"e": {"f": 5}}),
    ]
    assert [(item.mark and item.mark.line, item.code) for item in found] == [(3, "KG0113"), (7, "KG0112")]


def test_marks_after_a_broken_document_are_correct() -> None:
    documents, _ = read("a: [\n---\n# one\nb:\n  c: &x here\n  d: *x\n")
    assert documents[0].mark(["b", "c"]) == Mark("a.yaml", 5, 6, 7, "  c: &x here")
    assert documents[0].node.start_mark.line == 3


def test_directives_belong_to_the_document_that_follows() -> None:
    documents, found = read("a: [\n...\n%YAML 1.2\n# note\n---\nb: 2\n")
    assert [document.data for document in documents] == [{"b": 2}]
    assert [item.code for item in found] == ["KG0113"]


def test_a_document_has_an_api_version_kind_and_name() -> None:
    (document,), _ = read(SPEC)
    assert (document.apiVersion, document.kind, document.name) == ("kaigen.dev/v1alpha1", "Job", "finetune")


@pytest.mark.parametrize("text", ["x", "[1]", "{}", "apiVersion: 1\nkind: [a]\nmetadata: {name: 1}", "metadata: x"])
def test_other_data_has_no_api_version_kind_or_name(text: str) -> None:
    (document,), _ = read(text)
    assert (document.apiVersion, document.kind, document.name) == (None, None, None)


@pytest.mark.parametrize(
    ("path", "key", "place"),
    [
        ((), False, "1:1 apiVersion: kaigen.dev/v1alpha1"),
        (("kind",), False, "2:7 Job"),
        (("kind",), True, "2:1 kind"),
        (("metadata",), True, "3:1 metadata"),
        (("metadata",), False, "4:3 name: finetune"),
        (("metadata", "name"), False, "4:9 finetune"),
        (("spec", "image"), False, '7:10 {ref: "registry.example/torchtune:1.2"}'),
        (("spec", "image", "ref"), False, '7:16 "registry.example/torchtune:1.2"'),
        (("spec", "image", "ref"), True, "7:11 ref"),
        (("spec", "command"), False, "9:5 - tune"),
        (("spec", "command", 1), False, '10:7 "--config"'),
        (("spec", "command", 1), True, '10:7 "--config"'),
        (("spec", "resources", "memory"), False, "13:13 16Gi"),
        # What is not there: the key of the last thing that is.
        (("spec", "missing"), False, "5:1 spec"),
        (("spec", "command", 7), False, "8:3 command"),
        (("spec", "command", 0, "x"), False, "9:7 tune"),
        (("spec", "resources", "gpus", "count"), False, "12:5 gpus"),
        (("nothing", "here"), False, "1:1 apiVersion: kaigen.dev/v1alpha1"),
        ((0,), False, "1:1 apiVersion: kaigen.dev/v1alpha1"),
        (("spec", 0), False, "5:1 spec"),
    ],
)
def test_a_path_leads_to_the_value_in_the_text(path: tuple[str | int, ...], key: bool, place: str) -> None:
    (document,), _ = read(SPEC)
    mark = document.mark(path, key=key)
    assert mark.text == SPEC.splitlines()[mark.line - 1]
    assert f"{mark.line}:{mark.column} {mark.text[mark.column - 1 :][: mark.length]}" == place


def test_an_empty_value_is_marked_at_its_key() -> None:
    (document,), _ = read("a:\n  image:\n  x: 1\n")
    assert document.mark(["a", "image"]) == Mark("a.yaml", 2, 3, 5, "  image:")


def test_a_value_of_several_lines_is_marked_on_its_first_line() -> None:
    (document,), _ = read("a: |-  # note\n  one\n  two\nb: 'x\n  y'\nc: [1,\n  2]\n")
    assert document.mark(["a"]) == Mark("a.yaml", 1, 4, 10, "a: |-  # note")
    assert document.mark(["b"]) == Mark("a.yaml", 4, 4, 2, "b: 'x")
    assert document.mark(["c"]) == Mark("a.yaml", 6, 4, 3, "c: [1,")


def test_windows_line_ends_change_neither_marks_nor_excerpts() -> None:
    (document,), found = read(SPEC.replace("\n", "\r\n"))
    assert found == []
    assert document.data == load(SPEC)
    assert document.mark(["spec", "command", 1]) == Mark("a.yaml", 10, 7, 10, '    - "--config"')


def test_old_line_ends_count_too() -> None:
    (document,), _ = read("a: 1\rb:\r  c: 2\r")
    assert document.mark(["b", "c"]) == Mark("a.yaml", 3, 6, 1, "  c: 2")


def test_columns_are_counted_in_characters() -> None:
    (document,), _ = read("é😀: {k: 値, x: y}\n")
    assert document.mark(["é😀", "x"]).column == 15


def test_a_byte_order_mark_does_not_count() -> None:
    (document,), found = read("\ufeffa: 1\n")
    assert (document.data, found) == ({"a": 1}, [])
    assert document.mark(["a"], key=True) == Mark("a.yaml", 1, 1, 1, "a: 1")


def test_the_written_text_of_a_scalar_is_available() -> None:
    (document,), _ = read("a: 1.10\nb: [0x1F, 'q']\nc: {d: ~}\n")
    assert document.raw(["a"]) == "1.10"
    assert document.raw(["b", 0]) == "0x1F"
    assert document.raw(["b", 1]) == "q"
    assert document.raw(["c", "d"]) == "~"
    assert document.raw(["b"]) is None
    assert document.raw(["x"]) is None
    assert document.raw(["a", "x"]) is None


def test_aliases_are_copies() -> None:
    data = load("base: &base\n  env: {A: 1}\none: *base\ntwo: *base\n")
    assert data == {"base": {"env": {"A": 1}}, "one": {"env": {"A": 1}}, "two": {"env": {"A": 1}}}
    assert isinstance(data, dict)
    assert data["one"] is not data["two"]
    assert data["one"]["env"] is not data["two"]["env"]  # type: ignore[index,call-overload]


def test_merge_keys_add_missing_fields() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  <<: [*a, *b]\n  z: 3\nd: {<<: *a, x: 9}\n"
    (document,), found = read(text)
    assert found == []
    assert isinstance(document.data, dict)
    assert document.data["c"] == {"x": 1, "y": 1, "z": 3}
    assert document.data["d"] == {"x": 9, "y": 1}
    assert document.mark(["c", "y"]) == Mark("a.yaml", 1, 17, 1, "a: &a {x: 1, y: 1}")
    assert document.raw(["d", "x"]) == "9"


def test_a_quoted_merge_key_is_a_key() -> None:
    assert load('"<<": 1\n') == {"<<": 1}


def test_merge_keys_of_merged_mappings_are_followed() -> None:
    data = load("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}\n")
    assert isinstance(data, dict)
    assert data["c"] == {"x": 1, "y": 2}


def test_at_most_200_errors_are_reported() -> None:
    found = problems("".join(f"k{number}: yes\n" for number in range(1000)))
    assert len(found) == 200
