"""The lock files, the dependencies and the Makefile of the repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kaigen import __version__

ROOT = Path(__file__).parents[2]
_TEXT = (".md", ".yaml", ".yml", ".toml", ".py", "Makefile")
_VERSIONS = re.compile(
    r"(?:kaigen-dev/[a-z-]+:|kaigen-(?:dev|notebook)[\w/.-]*[@/]v|kaigen/\w+:|inputs: {version: |rev: v|newTag: |TAG="
    r"|Rendered-By: kaigen |^(?:__version__|version) = \"|^(?:v|appV)ersion: \")(\d+\.\d+\.\d+)",
    re.MULTILINE,
)
"""Names of kaigen's images, actions and files, and versions of its charts and plugins."""
LOCKS = sorted(ROOT.glob("requirements/*.txt"))
COLLECT = """
import json, pytest, sys

class Collected:
    def pytest_collection_finish(self, session):
        marked = {}
        for item in session.items:
            marked.setdefault(item.path.name, set()).add(item.get_closest_marker("engine") is not None)
        with open(sys.argv[1], "w") as file:
            json.dump({name: sorted(found) for name, found in marked.items()}, file)

options = ["--collect-only", "-qq", "-p", "no:cacheprovider", "tests/cluster"]
sys.exit(pytest.main(options, plugins=[Collected()]))
"""
"""Writes to a file, for each file of cluster tests, whether its tests have the marker `engine`."""


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


def test_every_place_that_names_kaigens_version_has_the_same() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    folders = ("charts/", "docs/", "gitops/", "kaigen/", "runtimes/", "README.md", "Makefile", ".github/")
    found: dict[str, str] = {}
    for name in files:
        if name.startswith(folders) and name.endswith(_TEXT):
            text = (ROOT / name).read_text(encoding="utf-8")
            found |= {f"{name}: {match[0]}": match[1] for match in _VERSIONS.finditer(text)}
    assert len(found) > 30
    assert {place: version for place, version in found.items() if version != __version__} == {}


def test_help_describes_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):", text, re.MULTILINE)
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"^  ([a-z-]+) +\w", done.stdout, re.MULTILINE) == targets == phony.split()


def test_each_file_of_cluster_tests_is_run_by_one_of_two_targets(tmp_path: Path) -> None:
    text = (ROOT / "Makefile").read_text()
    chosen = re.findall(r"\$\(PYTEST\) tests/cluster (?:-m (\w+|\"[\w ]+\") )?(.*)\$\(ARGS\)$", text, re.MULTILINE)
    assert chosen == [('"not engine"', "-n 3 --dist loadfile --no-loadscope-reorder "), ("engine", "")]
    report, cache = tmp_path / "report.json", tmp_path / "cache"
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(cache)}
    subprocess.run([sys.executable, "-c", COLLECT, report], cwd=ROOT, env=environment, check=True)
    marked = json.loads(report.read_text())
    assert marked.keys() == {path.name for path in (ROOT / "tests" / "cluster").rglob("test_*.py")}
    assert {name: found for name, found in marked.items() if len(found) > 1} == {}, "files with both kinds of tests"
    assert [True] in marked.values()
    assert [False] in marked.values()
    assert not (cache / "kaigen" / "cluster-tools").exists(), "collection builds no program"
