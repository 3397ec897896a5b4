"""What holds for every file in gitops/, and for what `kaigen init` writes for pipelines."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kaigen.scaffold.repository import repository_files
from tests.unit.pipelines.checkout import ROOT, read_yaml

FOLDER = ROOT / "gitops"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
HOSTS = r"(?:pypi|pythonhosted|npmjs|crates|rubygems|proxy\.golang|files\.python|index\.docker)\.\w+"


def test_every_yaml_file_passes_yamllint() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "yamllint", "--strict", "gitops", ".pre-commit-hooks.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_no_file_names_a_host_of_packages(path: Path) -> None:
    assert re.findall(HOSTS, path.read_text(encoding="utf-8")) == []


def test_scripts_can_be_run() -> None:
    scripts = [path for path in FILES if path.suffix == ".sh"]
    assert len(scripts) == 1
    assert all(path.stat().st_mode & 0o111 for path in scripts)


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """What `kaigen init` writes."""
    for name, text in repository_files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_workflow_of_a_new_repository_follows_githubs_schema(started: Path, check_schema: Any) -> None:
    check_schema("vendor.github-workflows", started / ".github" / "workflows" / "kaigen.yaml")


def test_the_workflow_of_a_new_repository_uses_the_action_with_inputs_that_it_has(started: Path) -> None:
    workflow = read_yaml(started / ".github" / "workflows" / "kaigen.yaml")
    (job,) = workflow["jobs"].values()
    (step,) = [each for each in job["steps"] if "kaigen" in each.get("uses", "")]
    assert re.fullmatch(r"[\w-]+/kaigen/gitops/github-action@v[\d.]+", step["uses"])
    assert set(step.get("with", {})) <= set(read_yaml(FOLDER / "github-action" / "action.yml")["inputs"])
    assert job["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert workflow["permissions"] == {}


def test_the_hooks_of_a_new_repository_are_those_of_this_one(started: Path) -> None:
    (repository,) = read_yaml(started / ".pre-commit-config.yaml")["repos"]
    known = {hook["id"] for hook in read_yaml(ROOT / ".pre-commit-hooks.yaml")}
    assert {hook["id"] for hook in repository["hooks"]} <= known
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-config", str(started / ".pre-commit-config.yaml")],
        check=False,
    )
    assert done.returncode == 0
