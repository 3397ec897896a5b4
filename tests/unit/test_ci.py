"""`.ci/run` reports its result in the last line and the exit status."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

TESTS = {
    "good": "def test_a(): pass\ndef test_b(): pass\n",
    "bad": "def test_a(): pass\ndef test_b(): assert 0\n",
    "error": "def test_a(missing): pass\n",
    "none": "",
    "broken": "import nothing_of_that_name\n",
}
PASSES = "true"
FAILS = "false"


def pytest_on(name: str) -> str:
    # Loading the plugins of this repository's tests takes longer than all else.
    return f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -p no:cacheprovider {name}.py"


@pytest.mark.parametrize(
    ("lint", "test", "chat", "cluster", "last_line"),
    [
        (PASSES, pytest_on("good"), pytest_on("good"), pytest_on("good"), "10 passed, 0 failed"),
        (FAILS, pytest_on("good"), PASSES, pytest_on("good"), "8 passed, 1 failed"),
        (PASSES, pytest_on("bad"), pytest_on("bad"), pytest_on("error"), "6 passed, 3 failed"),
        (PASSES, pytest_on("good"), PASSES, pytest_on("none"), "7 passed, 1 failed"),
        (PASSES, pytest_on("broken"), FAILS, FAILS, "4 passed, 3 failed"),
        (PASSES, pytest_on("good") + "; kill -KILL $$$$", PASSES, pytest_on("good"), "9 passed, 1 failed"),
    ],
    ids=["all pass", "lint fails", "tests fail", "no tests", "nothing runs", "a part is killed"],
)
def test_the_last_line_is_the_sum_of_all_parts(
    tmp_path: Path, lint: str, test: str, chat: str, cluster: str, last_line: str
) -> None:
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    parts = {"lint": lint, "test": test, "test-output": PASSES, "test-runtimes": PASSES, "test-chat": chat}
    parts |= {"test-docs": PASSES, "test-cluster": cluster}
    (tmp_path / "Makefile").write_text("".join(f"{name}:\n\t{line}\n" for name, line in parts.items()))
    for name, text in TESTS.items():
        (tmp_path / f"{name}.py").write_text(text)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in "python", "python3":
        (programs / name).symlink_to(sys.executable)

    done = subprocess.run(
        [tmp_path / ".ci" / "run"],
        env={"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )

    assert done.stdout.splitlines()[-1] == last_line
    assert done.returncode == (0 if last_line.endswith(" 0 failed") else 1)
