"""A folder without kaigen.yaml: the hint is the nearest repository in the folders below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.config.missing import missing_config
from tests.unit.config.reports import report

MESSAGE = "KG0718 there is no kaigen.yaml in this folder or in a folder above it"
NONE = f"{MESSAGE} | run `kaigen init` to start a repository here"


def make(root: Path, *files: str) -> None:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("", encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        (("one/kaigen.yaml",), "one"),
        (("a/b/c/kaigen.yaml",), "a/b/c"),
        (("a/b/kaigen.yaml", "z/kaigen.yaml"), "z"),
        (("b/kaigen.yaml", "a/kaigen.yaml"), "a"),
        (("a/other.yaml", "b/kaigen.yaml"), "b"),
        (("a/kaigen.yaml/file", "b/kaigen.yaml"), "b"),
    ],
)
def test_the_nearest_folder_with_a_file_of_that_name_is_the_hint(
    tmp_path: Path, files: tuple[str, ...], folder: str
) -> None:
    make(tmp_path, *files)
    assert report([missing_config(tmp_path)]) == [f"{MESSAGE} | change to the folder `{folder}`"]


@pytest.mark.parametrize("file", ["a/b/c/d/kaigen.yaml", ".git/kaigen.yaml", "node_modules/kaigen.yaml", "note.txt"])
def test_folders_too_deep_hidden_or_of_tools_are_not_searched(tmp_path: Path, file: str) -> None:
    make(tmp_path, file)
    assert report([missing_config(tmp_path)]) == [NONE]


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "elsewhere/kaigen.yaml")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "elsewhere")
    assert report([missing_config(tmp_path / "here")]) == [NONE]


def test_only_the_first_200_folders_of_a_level_are_searched(tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"{number:03}").mkdir()
    make(tmp_path, "200/kaigen.yaml")
    assert report([missing_config(tmp_path)]) == [NONE]
    make(tmp_path, "199/kaigen.yaml")
    assert report([missing_config(tmp_path)]) == [f"{MESSAGE} | change to the folder `199`"]


def test_a_folder_that_is_gone_has_no_repository(tmp_path: Path) -> None:
    assert report([missing_config(tmp_path / "gone")]) == [NONE]
