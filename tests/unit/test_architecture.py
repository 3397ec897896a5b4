"""docs/architecture.md names existing code, lists every package, and describes a render in the order of its calls."""

from __future__ import annotations

import ast
import re
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import pytest

from kaigen.cli.main import run
from tests.unit.test_layers import LAYERS, MODULES, ROOT
from tools.stages import stages_svg

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = [package.removeprefix("kaigen.") for package in LAYERS]
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}


def section(title: str) -> str:
    """Return the text below a heading, up to the next one."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def names(text: str) -> list[str]:
    """Return the names of modules, classes and functions in a text, in their order."""
    return [name for name in re.findall(r"`(\w+(?:\.\w+)+)`", text) if name.partition(".")[0] in {*PACKAGES, "kaigen"}]


def resolved(name: str) -> Any:
    """Return the module, class or function of a name relative to `kaigen`."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(("kaigen", *parts[:length]))
        if module in MODULES:
            value: Any = import_module(module)
            for part in parts[length:]:
                value = vars(value)[part]
            return value
    raise LookupError(name)


def function(name: str) -> FunctionType | None:
    """Return the function of a name; None for a module, a class or a constant."""
    value = resolved(name)
    if isinstance(value, cached_property):
        value = value.func
    return value if isinstance(value, FunctionType) else None


NAMES = sorted(set(names(PAGE)) - {"kaigen.yaml"})
WALK = [name for name in names(section("From a spec to the tree")) if name != "kaigen.yaml" and function(name)]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_on_the_page_exists(name: str) -> None:
    assert resolved(name) is not None


def test_names_and_functions_are_found_on_the_page() -> None:
    assert len(NAMES) > 50
    assert len(WALK) > 35
    with pytest.raises((LookupError, KeyError)):
        resolved("pipeline.run.no_such_function")


def test_every_path_on_the_page_exists() -> None:
    paths = [
        path
        for path in re.findall(r"`([\w.-]+/[\w./-]*)`", PAGE)
        if path.partition("/")[0] in FOLDERS and "NAME" not in path
    ]
    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_page_lists_every_package_in_the_order_of_the_layers() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", section("Packages"), re.MULTILINE)
    assert listed == PACKAGES[::-1]


def test_the_picture_shows_packages() -> None:
    names = re.findall(r'class="name"[^>]*>(\w+)<', stages_svg())
    assert len(names) == 10
    assert set(names) <= set(PACKAGES)


CONFIG = """\
apiVersion: kaigen.dev/v1alpha1
kind: Config
format: both
gitops: {repository: "https://git.example.com/ml/deploy.git", argocd: {}}
overrides:
  - match: {app: phi-4}
    metadata: {labels: {team: search}}
patches:
  - target: {app: phi-4, kind: Service}
    patch: {metadata: {annotations: {owner: search}}}
values: {phi-4: {replicas: 2}}
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a KAITO Workspace, an override, a patch, a setting, and Argo CD."""
    (tmp_path / "specs").mkdir()
    example = ROOT / "examples" / "kaito" / "phi-4.yaml"
    (tmp_path / "specs" / "phi-4.yaml").write_bytes(example.read_bytes())
    (tmp_path / "kaigen.yaml").write_text(CONFIG)
    # What an earlier run compiled at the same path is not compiled again.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def calls() -> list[str]:
    """Run `kaigen render`, and return every call of a function of the walk."""
    named = {found.__code__: name for name in WALK if (found := function(name))}
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in named:
            called.append(named[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        code = run(["render", "--quiet"])
    finally:
        sys.setprofile(before)
    assert code == 0
    return called


@pytest.mark.usefixtures("repository")
def test_a_render_calls_the_functions_of_the_walk_in_their_order() -> None:
    remaining = iter(calls())
    assert [name for name in WALK if name not in remaining] == []


TABLES = ("kaigen.diff.rules.", "kaigen.pipeline.setting_changes")
"""Modules whose functions are entries of a table, named after the change that they find."""


def test_no_public_function_is_a_participle_alone() -> None:
    found = {
        f"{module}.{node.name}"
        for module, path in MODULES.items()
        if not module.startswith(TABLES)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and re.fullmatch(r"[a-z]+(ed|wn)", node.name)
    }
    assert found == set()
