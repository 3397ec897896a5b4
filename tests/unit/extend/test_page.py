"""docs/extending.md shows the files of examples/extending and the messages of its scenario verbatim."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.scenarios import parse

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "extending"
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^`([^`\n]+)`\n\n```(?:yaml|jinja)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
FILES = sorted(
    path.relative_to(EXAMPLE).as_posix()
    for path in EXAMPLE.rglob("*")
    if path.is_file() and "rendered" not in path.parts
)


def content(name: str) -> str:
    text = (EXAMPLE / name).read_text(encoding="utf-8")
    return re.sub(r"\A# yaml-language-server:.*\n", "", text)


def test_the_page_shows_every_file_of_the_example() -> None:
    assert sorted(BLOCKS) == FILES


@pytest.mark.parametrize("name", FILES)
def test_the_files_of_the_page_equal_those_of_the_example_and_the_scenario(name: str) -> None:
    scenario = parse((ROOT / "tests/scenario/commands/extend/page.txt").read_text(encoding="utf-8"))
    first = next(section for section in scenario if section.mark == "---" and section.name == name)
    assert content(name) == BLOCKS[name] == first.content().decode()


def test_the_messages_of_the_page_appear_in_the_scenario() -> None:
    scenario = (ROOT / "tests/scenario/commands/extend/page.txt").read_text(encoding="utf-8")
    messages = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(messages) == 2
    for message in messages:
        assert message in scenario
