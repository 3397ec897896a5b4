"""The workflows of the repository, checked by actionlint, which knows GitHub's syntax, expressions and events."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cluster.tools.parts import locate

WORKFLOWS = Path(__file__).parents[2] / ".github" / "workflows"


def actionlint(*files: Path) -> subprocess.CompletedProcess[str]:
    """Check workflows without shellcheck and pyflakes, which not every machine has."""
    options = ["-shellcheck=", "-pyflakes=", "-no-color"]
    return subprocess.run([locate()["actionlint"], *options, *files], capture_output=True, text=True, check=False)


def test_workflows_are_valid() -> None:
    files = sorted(WORKFLOWS.glob("*.yml"))
    assert {file.name for file in files} >= {"ci.yml", "release.yml", "codeql.yml"}
    done = actionlint(*files)
    assert done.returncode == 0, done.stdout


def test_a_mistake_is_found(tmp_path: Path) -> None:
    text = (WORKFLOWS / "ci.yml").read_text()
    file = tmp_path / "ci.yml"
    file.write_text(text.replace("matrix.target", "matrix.targets"))
    done = actionlint(file)
    assert done.returncode == 1
    assert 'property "targets" is not defined' in done.stdout
