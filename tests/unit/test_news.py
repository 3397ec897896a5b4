"""The entries in `news/`, and the changelog that `make changelog` writes from them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kaigen

ROOT = Path(__file__).parents[2]
TYPES = ("breaking", "added", "changed", "fixed", "security", "removed")
NAME = re.compile(rf"\+[a-z0-9][a-z0-9-]*\.(?:{'|'.join(TYPES)})\.md")
CHANGELOG = "# Changelog\n\nWords.\n\n<!-- towncrier release notes start -->\n\n{}## 0.0.9 (2020-01-01)\n\nOld.\n"


def fragments() -> list[Path]:
    return [each for each in (ROOT / "news").iterdir() if each.name not in ("README.md", "template.md")]


def problem(path: Path) -> str | None:
    """Return what is wrong with an entry, None if nothing is."""
    if not NAME.fullmatch(path.name):
        return "the name is not +SLUG.TYPE.md"
    text = path.read_text().strip()
    if not text or "\n\n" in text or "\n- " in text:
        return "the text is not one entry"
    return "more than three lines" if text.count("\n") > 2 else None


def test_every_entry_has_a_type_and_a_text() -> None:
    assert {path.name: why for path in fragments() if (why := problem(path))} == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.added.md", "A"),
        ("+a.new.md", "A"),
        ("+A b.added.md", "A"),
        ("+a.added.md", " \n"),
        ("+a.added.md", "A\n- B"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert problem(path) is not None


def make_changelog(folder: Path, *arguments: str) -> str:
    """Run `make changelog` in a copy of the repository's settings and return what it prints."""
    command = ["make", "-o", ".venv/.dev", "changelog", f"PY={sys.executable}", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def scene(folder: Path, before: str) -> Path:
    for name in ("pyproject.toml", "Makefile"):
        shutil.copy(ROOT / name, folder / name)
    news = folder / "news"
    news.mkdir()
    shutil.copy(ROOT / "news" / "template.md", news)
    (news / "+one.added.md").write_text("First line,\nsecond line.\n")
    (news / "+two.breaking.md").write_text("- Rename it.\n")
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(CHANGELOG.format(before))
    return changelog


ENTRIES = f"""## {kaigen.__version__} (2026-12-24)

### Breaking changes

- Rename it.

### Added

- First line,
  second line.
"""


def test_a_release_takes_the_entries_over_and_dates_what_was_unreleased(tmp_path: Path) -> None:
    changelog = scene(tmp_path, f"## {kaigen.__version__} (unreleased)\n\n### Upgrade\n\nFirst this.\n\n")
    make_changelog(tmp_path, "ARGS=--date 2026-12-24")
    end = "\n### Upgrade\n\nFirst this.\n\n"
    assert changelog.read_text() == CHANGELOG.format(ENTRIES + end)
    assert [path.name for path in (tmp_path / "news").iterdir()] == ["template.md"]


def test_a_draft_changes_nothing(tmp_path: Path) -> None:
    changelog = scene(tmp_path, f"## {kaigen.__version__} (unreleased)\n\nWords.\n\n")
    before = changelog.read_text()
    assert ENTRIES in make_changelog(tmp_path, "ARGS=--draft --date 2026-12-24")
    assert changelog.read_text() == before
    assert len(list((tmp_path / "news").iterdir())) == 3
