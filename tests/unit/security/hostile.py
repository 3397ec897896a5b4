"""A repository that somebody may have prepared, and kaigen run in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import Struct

from kaigen.cli.main import run

CONFIG = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nprofile: k3s\nnamespace: ml\n"
JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: evaluate}
spec:
  image: example.com/evaluate:1.0
  command: [evaluate]
  resources: {cpu: 1, memory: 1Gi}
"""
_GIT = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Outcome(Struct, frozen=True):
    """The result of a command: exit code and streams."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both streams."""
        return self.out + self.err


class Repository:
    """A Git repository with kaigen.yaml and one Job, which is the working folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.write({"kaigen.yaml": CONFIG, "specs/evaluate.yaml": JOB})
        self.git("init", "--quiet", "--initial-branch=main")

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, with the folders above them."""
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")

    def git(self, *arguments: str, data: bytes = b"") -> str:
        """Run Git, which must succeed, and return what it prints."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **_GIT},
            input=data,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--message=Change")

    def kaigen(self, *arguments: str) -> Outcome:
        """Run kaigen in this process."""
        self._capsys.readouterr()
        code = run(list(arguments))
        out, err = self._capsys.readouterr()
        return Outcome(code, out, err)

    def rendered(self) -> None:
        """Render and commit."""
        done = self.kaigen("render")
        assert done.code == 0, done.err
        self.commit()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Repository:
    """Return a repository in the working folder; nothing is rendered."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(folder)
    return Repository(folder, capsys)
