"""The commands in the pages of tasks print what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.goldens import Goldens
from tests.pages import run_page

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("start.md", "fine-tuning.md", "weights.md", "secrets.md", "charts.md", "operate/change.md")


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_print_what_it_shows(page: str, tmp_path: Path, golden: Goldens) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    Goldens(DOCS, golden.update).check(page, run_page(text, folder, tmp_path / "cache"))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_task_has_commands(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8").count("\n$ kaigen ") >= 1


def test_a_wrong_output_is_seen(tmp_path: Path) -> None:
    text = "`a.yaml`\n\n```yaml\na: 1\n```\n\n```console\n$ kaigen --version\nkaigen 99\n```\n"
    assert run_page(text, tmp_path, tmp_path) != text
    assert (tmp_path / "a.yaml").read_text() == "a: 1\n"
