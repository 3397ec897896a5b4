from __future__ import annotations

from pathlib import Path

import pytest

from tests.goldens import Goldens, joined


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "one.txt").write_bytes(b"a\nb\n")
    (tmp_path / "tree" / "same").write_bytes(b"same\n")
    (tmp_path / "tree" / "deep" / "gone").write_bytes(b"gone\n")
    return tmp_path


def test_equal_output_passes(folder: Path) -> None:
    goldens = Goldens(folder)
    goldens.check("one.txt", "a\nb\n")
    goldens.check("one.txt", b"a\nb\n")
    goldens.check_tree("tree", {"same": "same\n", "deep/gone": b"gone\n"})


@pytest.mark.parametrize(
    ("actual", "line"),
    [("a\nc\n", "-b\n+c\n"), ("a\nb", "+b\n(no newline at the end)"), ("a\r\nb\n", "-a\n+a"), (b"\xff", r"+\xff")],
)
def test_a_difference_is_shown_line_by_line(folder: Path, actual: str | bytes, line: str) -> None:
    with pytest.raises(AssertionError) as caught:
        Goldens(folder).check("one.txt", actual)
    assert line in str(caught.value)
    assert (folder / "one.txt").read_bytes() == b"a\nb\n"


def test_a_missing_golden_file_fails(folder: Path) -> None:
    with pytest.raises(AssertionError, match="new: no such golden file"):
        Goldens(folder).check("new", "text")
    assert not (folder / "new").exists()


def test_a_tree_reports_every_new_missing_or_different_file(folder: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        Goldens(folder).check_tree("tree", {"same": "other\n", "new": "new\n"})
    text = str(caught.value)
    assert "tree/deep/gone: missing from the output" in text
    assert "tree/new: no such golden file" in text
    assert "-same\n+other\n" in text


def test_update_rewrites_only_golden_files_that_differ(folder: Path) -> None:
    goldens = Goldens(folder, update=True)
    untouched = (folder / "tree" / "same").stat().st_mtime_ns
    goldens.check("one.txt", "new\n")
    goldens.check_tree("tree", {"same": "same\n", "other/new": "new\n"})
    assert (folder / "one.txt").read_text() == "new\n"
    assert (folder / "tree" / "other" / "new").read_text() == "new\n"
    assert not (folder / "tree" / "deep" / "gone").exists()
    assert (folder / "tree" / "same").stat().st_mtime_ns == untouched


def test_joined_files_differ_when_a_path_content_or_final_newline_differs() -> None:
    files = {"b": b"two\n", "a": b"one\n"}
    assert joined(files) == "=== a\none\n=== b\ntwo\n"
    others: list[dict[str, bytes]] = [
        {"a": b"one\n"},
        {"a": b"one\n", "c": b"two\n"},
        {"a": b"one\n", "b": b"two"},
        {"a": b"one\n", "b": b"too\n"},
    ]
    assert len({joined(each) for each in [files, *others]}) == 5
