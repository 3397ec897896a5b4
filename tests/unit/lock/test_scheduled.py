"""The commands of `docs/schedules.md` that a pipeline runs at fixed times: they lock, render, commit and push."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runtimes.downloader.tests.hub import Hub
from tests.unit.lock.conftest import Repository, model, model_files

DOCS = Path(__file__).parents[3] / "docs" / "schedules.md"
BRANCH = "kaigen-refresh"
JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: evaluate}
spec:
  image: REGISTRY/acme/tune:1
  model: tuned
"""


def commands() -> str:
    """Return the commands of the page."""
    section = DOCS.read_text(encoding="utf-8").partition("## Runs by commits\n")[2]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


class Clone:
    """The clone of a repository, in which a pipeline runs.

    Attributes:
        folder: where it is.
        origin: what it was cloned from.
    """

    def __init__(self, folder: Path, origin: Path) -> None:
        self.folder, self.origin = folder, origin
        for words in (
            ("init", "--quiet", "--bare", "--initial-branch=main", str(origin)),
            ("init", "--quiet", "--initial-branch=main"),
            ("remote", "add", "origin", str(origin)),
            ("add", "--all"),
            ("commit", "--quiet", "--message=specs"),
            ("push", "--quiet", "origin", "main"),
        ):
            self.git(*words)

    def run(self, *words: str) -> str:
        """Run a program to its end, and return what it printed."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        named = {
            f"GIT_{role}_{field}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")
        }
        own = {"PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **named}
        done = subprocess.run(words, cwd=self.folder, env=os.environ | own, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def git(self, *words: str) -> str:
        return self.run("git", *words)

    def refresh(self) -> None:
        """Run the commands of the page as a pipeline does: the first that fails ends it."""
        self.run("sh", "-e", "-c", commands())

    def pushed(self) -> str:
        """Return the commit of the branch; empty if it was not pushed."""
        return self.git("ls-remote", str(self.origin), f"refs/heads/{BRANCH}").partition("\t")[0]


@pytest.fixture
def clone(repository: Repository, hub: Hub, tmp_path: Path) -> Clone:
    """Return a clone whose origin has a Model of a branch, a Job that reads it, the lock, and what is rendered."""
    repository.write(model(hub))
    repository.write(JOB.replace("REGISTRY", repository.registry), "specs/job.yaml")
    assert repository.run("lock")[0] == 0
    assert repository.run("render")[0] == 0
    return Clone(repository.root, tmp_path / "origin.git")


def job_names(clone: Clone, revision: str) -> set[str]:
    """Return the names of the Jobs of a commit."""
    found = clone.git("grep", "-h", "^  name: ", revision, "--", "rendered/**/job.yaml")
    return set(found.replace("name:", "").split())


def test_nothing_is_pushed_if_nothing_changed(clone: Clone) -> None:
    clone.refresh()
    assert clone.pushed() == ""


def test_a_changed_model_is_a_commit_with_new_runs(clone: Clone, hub: Hub) -> None:
    before = job_names(clone, "main")
    for change in (b"# Changed\n", b"# Changed again\n"):
        hub.commit({**model_files(), "README.md": change})
        clone.refresh()
        assert hub.revisions["main"] in clone.git("show", f"{clone.pushed()}:kaigen.lock")
        after = job_names(clone, clone.pushed())
        assert {name.rpartition("-")[0] for name in after} == {name.rpartition("-")[0] for name in before}
        assert len(after) == 2
        assert not before & after
        # One commit on the branch that the pull request goes to, whatever an earlier one had.
        assert clone.git("rev-list", "--count", f"main..{clone.pushed()}").strip() == "1"
        before = after
