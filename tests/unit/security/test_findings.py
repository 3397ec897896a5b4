"""Each attack in docs/security.md has a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROWS = [
    line
    for line in (ROOT / "docs/security.md").read_text(encoding="utf-8").partition("## What was found")[2].splitlines()
    if line.startswith("| ")
][2:]
FOLDERS = ("tests", "tests/unit", "runtimes/downloader/tests")


def test_every_attack_has_tests_that_exist() -> None:
    attacks = (ROOT / "tests/cluster/test_hostile_pull_requests.py").read_text(encoding="utf-8")
    assert len(ROWS) > 10
    for row in ROWS:
        tests = re.findall(r"`([\w./]+\.py)::(\w+)`", row)
        names = re.findall(r'attack "([^"]+)"', row)
        assert tests or names, row
        for file, name in tests:
            (path,) = (path for folder in FOLDERS if (path := ROOT / folder / file).exists())
            text = path.read_text(encoding="utf-8")
            assert f"\ndef {name}(" in text, (file, name)
        assert [name for name in names if f'"{name}": Attack(' not in attacks] == []
