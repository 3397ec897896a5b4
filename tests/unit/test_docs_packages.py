"""`make docs` works without the packages of the tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
from tools import docs, site_pages
assert docs.generated_files()
assert site_pages.pages()
"""


def locked(name: str) -> set[str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return {found.replace("-", "_") for found in re.findall(r"(?m)^([a-z0-9._-]+)==", text)}


def test_the_pages_are_generated_without_packages_of_tests() -> None:
    blocked = sorted(locked("dev") - locked("base") - locked("docs") - locked("build"))
    assert {"pytest", "hypothesis", "kubernetes"} <= {*blocked}
    command = [sys.executable, "-c", PROGRAM.format(blocked=blocked)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
