from __future__ import annotations

from pathlib import Path

import pytest

from tests.goldens import Goldens


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
    [
        ("a\nc\n", "-b\n+c\n"),
        ("a\nb", "+b\n(no newline at the end)"),
        ("a\r\nb\n", "-a\n+a"),
        (b"\xff", r"+\xff"),
    ],
)
def test_a_difference_is_shown_line_by_line(folder: Path, actual: str | bytes, line: str) -> None:
    with pytest.raises(AssertionError) as caught:
        Goldens(folder).check("one.txt", actual)
    assert line in str(caught.value)
    assert (folder / "one.txt").read_bytes() == b"a\nb\n"


def test_a_golden_that_is_not_there_fails(folder: Path) -> None:
    with pytest.raises(AssertionError, match="new: in the output, but no golden file"):
        Goldens(folder).check("new", "text")
    assert not (folder / "new").exists()


def test_a_tree_names_every_file_that_is_new_gone_or_other(folder: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        Goldens(folder).check_tree("tree", {"same": "other\n", "new": "new\n"})
    text = str(caught.value)
    assert "tree/deep/gone: a golden file, but not in the output" in text
    assert "tree/new: in the output, but no golden file" in text
    assert "-same\n+other\n" in text


def test_update_makes_the_goldens_what_the_output_is(folder: Path) -> None:
    goldens = Goldens(folder, update=True)
    untouched = (folder / "tree" / "same").stat().st_mtime_ns
    goldens.check("one.txt", "new\n")
    goldens.check_tree("tree", {"same": "same\n", "other/new": "new\n"})
    assert (folder / "one.txt").read_text() == "new\n"
    assert (folder / "tree" / "other" / "new").read_text() == "new\n"
    assert not (folder / "tree" / "deep" / "gone").exists()
    assert (folder / "tree" / "same").stat().st_mtime_ns == untouched
