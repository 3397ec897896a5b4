"""A checkout as a pipeline has it, and a pipeline's steps run in it as the forge would run them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.scenarios import call_in_process
from tests.specs import QWEN

ROOT = Path(__file__).parents[2]
_FILES = {
    "kaigen.yaml": """\
apiVersion: kaigen.dev/v1alpha1
kind: Config
profile: k3s
namespace: ml
format: both
""",
    "specs/qwen.yaml": QWEN,
    "specs/finetune.yaml": """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata:
  name: finetune
spec:
  image: example.com/tune:1
  model: qwen
  command: [tune, run]
  output:
    volume: {size: 50Gi}
  resources:
    memory: 24Gi
""",
}
"""A Model and a Job that reads it, in a repository without environments."""

_GIT = {
    **{f"GIT_{role}_NAME": "Ada" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "ada@example.com" for role in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def read_yaml(path: Path) -> Any:
    """The one document of a file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def write_repository(folder: Path) -> None:
    """Write kaigen.yaml and specs into a folder; nothing rendered."""
    for name, text in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def plant_modules(folder: Path) -> None:
    """Write modules into a folder that leave a file `ran` behind when Python imports them from there."""
    code = "import os\nopen(os.path.join(os.environ['RUNNER_TEMP'], 'ran'), 'w').close()\n"
    for name in (
        "venv",
        "secrets",
        "random",
        "pip/__init__",
        "sitecustomize",
        "usercustomize",
        "click",
        "yaml",
        "kaigen/gitops/comment",
    ):
        (folder / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(code, encoding="utf-8")


class Checkout:
    """A clone on a branch of its own, of a small repository, with the branch that it is to be merged into."""

    here: Path

    def __init__(self, folder: Path, below: str = "") -> None:
        """Make the origin with the repository, rendered, on `main`, and a clone of it on `change`.

        Args:
            folder: an empty one, for both.
            below: folder of kaigen.yaml in the repository.
        """
        self.top = folder / "checkout"
        self.temp = folder / "temp"
        self.temp.mkdir()
        origin = folder / "origin"
        write_repository(origin / below)
        self._programs()
        self.here = origin / below
        self.kaigen("-q", "render")
        self._git(origin, "init", "--quiet", "--initial-branch=main")
        self._git(origin, "add", "--all")
        self._git(origin, "commit", "--quiet", "--message=Begin")
        self._git(folder, "clone", "--quiet", str(origin), str(self.top))
        self._git(self.top, "switch", "--quiet", "--create", "change")
        self.here = self.top / below

    def _git(self, folder: Path, *arguments: str) -> str:
        command, environment = ["git", *arguments], {**os.environ, **_GIT}
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.strip()

    def git(self, *arguments: str) -> str:
        """Run Git at the top of the clone, which must succeed, and return what it prints."""
        return self._git(self.top, *arguments)

    def _programs(self) -> None:
        """What an install step leaves behind: kaigen of this tree, and the interpreter that it runs on."""
        programs = self.temp / "kaigen" / "bin"
        programs.mkdir(parents=True)
        for name, extra in (("kaigen", "-P -m kaigen "), ("python", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {extra}"$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that is in a file."""
        target = self.here / path
        text = target.read_text(encoding="utf-8")
        assert old in text
        target.write_text(text.replace(old, new), encoding="utf-8")

    def commit(self) -> None:
        """Commit everything."""
        self._git(self.top, "add", "--all")
        self._git(self.top, "commit", "--quiet", "--message=Change")

    def kaigen(self, *arguments: str) -> None:
        """Run kaigen, in this process; it must succeed."""
        code, _, err = call_in_process(arguments, self.here, self._environment({}))
        assert code == 0, err.decode()

    def run(
        self, script: str, variables: Mapping[str, str], shell: Sequence[str] = ("bash", "-eo", "pipefail", "-c")
    ) -> subprocess.CompletedProcess[str]:
        """Run a script in the folder of kaigen.yaml, with these variables and few others."""
        return subprocess.run(
            [*shell, script],
            cwd=self.here,
            env=self._environment(variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": f"{self.temp / 'kaigen' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.temp),
            "PYTHONPATH": str(ROOT),
            "KAIGEN_CACHE_DIR": "off",
            "RUNNER_TEMP": str(self.temp),
            **_GIT,
            **variables,
        }
