"""The lock files, the dependencies and the Makefile of the repository."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted(ROOT.glob("requirements/*.txt"))


def pins(lock: Path) -> dict[str, str]:
    """Return versions by package name."""
    return dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", lock.read_text(), re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_locked_package_has_a_hash_and_no_line_names_a_host(lock: Path) -> None:
    text = lock.read_text()
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(pins(lock)) > 0
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert re.findall(r".*(?:://|@ |--index|--find-links|(?<![\w.])/).*", text) == []


def test_locks_that_are_installed_together_agree() -> None:
    base, build, dev = (pins(ROOT / "requirements" / f"{name}.txt") for name in ("base", "build", "dev"))
    assert dev == dev | base
    assert {name: dev[name] for name in build.keys() & dev.keys()} == {
        name: build[name] for name in build.keys() & dev.keys()
    }


def test_kaigen_has_few_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=!~ ]", each)[0].lower() for each in project["dependencies"]}
    assert names == {"click", "jinja2", "jsonschema", "msgspec", "pyyaml"}
    assert len(pins(ROOT / "requirements" / "base.txt")) < 20


def test_help_describes_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):", text, re.MULTILINE)
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"^  ([a-z-]+) +\w", done.stdout, re.MULTILINE) == targets == phony.split()
