"""Clones of a repository of specs, as people and pipelines have them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kaigen.config.settings import Config
from kaigen.git.remote import Git
from kaigen.publish.branch import PublishOptions, Tree, publish_branch
from kaigen.publish.results import BranchResult
from kaigen.publish.source import read_source
from tests.unit.publish.gitserver import git

JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: {name}, namespace: ml}}
spec:
  image: python:3.12-slim
  command: [python, train.py]
  params: {{version: "{version}"}}
"""


def app(name: str, content: str = "1") -> dict[str, bytes]:
    """A tree of one app."""
    return {f"ml/{name}/manifests/job.yaml": f"{name} {content}\n".encode()}


class Clone:
    """A clone of the repository that the specs are in.

    Attributes:
        top: the folder of the clone.
        folder: the folder with kaigen.yaml.
    """

    def __init__(self, top: Path, place: str = "") -> None:
        self.top = top
        self.folder = top / place

    @classmethod
    def make(cls, folder: Path, url: str, first: Path | None, place: str = "") -> Clone:
        """Create a repository with one commit, or clone the first one; `origin` is the deploy repository.

        Args:
            folder: of the clone.
            url: of the deploy repository.
            first: the clone to clone; None to create a repository.
            place: the folder of kaigen.yaml in the repository.
        """
        if first is None:
            folder.mkdir()
            git(folder, "init", "--quiet", "--initial-branch=main")
            git(folder, "remote", "add", "origin", url)
        else:
            git(first.parent, "clone", "--quiet", str(first), str(folder))
            git(folder, "remote", "set-url", "origin", url)
        (folder / place).mkdir(parents=True, exist_ok=True)
        made = cls(folder, place)
        made.git("config", "user.name", "Ada")
        made.git("config", "user.email", "ada@example.com")
        if first is None:
            made.write("kaigen.yaml", "kind: Config\n")
            made.job("qwen")
            # Two that are made within the same second must not be the same repository.
            made.commit(f"First of {url}")
        return made

    def worktree(self, folder: Path) -> Clone:
        """Return a new working tree of the same repository, at the same commit."""
        self.git("worktree", "add", "--quiet", "--detach", str(folder))
        return Clone(folder, self.folder.relative_to(self.top).as_posix())

    def git(self, *arguments: str) -> str:
        """Return the output of git in the clone."""
        return git(self.folder, *arguments).removesuffix("\n")

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def job(self, name: str, version: str = "1") -> None:
        """Write the spec of a Job."""
        self.write(f"specs/{name}.yaml", JOB.format(name=name, version=version))

    def commit(self, message: str) -> str:
        """Commit everything and return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def publish(
        self,
        files: Mapping[str, bytes],
        *,
        remote: str = "origin",
        branch: str = "deploy",
        path: str = "rendered",
        environment: str = "",
        allow_dirty: bool = False,
        options: PublishOptions | None = None,
    ) -> BranchResult:
        """Publish one tree as rendered from the checked-out commit."""
        config = Config(root=self.folder)
        at = Git.of(self.folder, remote)
        source = read_source(at, [config], allow_dirty=allow_dirty)
        trees = [Tree(environment, path, files)]
        return publish_branch(at, source, branch, trees, options, pause=lambda seconds: None)

    def state(self) -> dict[str, str]:
        """Return everything that a publication must not change: working tree, index, branches, HEAD, configuration."""
        parts = {
            "status": self.git("status", "--porcelain", "--ignored", "--untracked-files=all"),
            "branches": self.git("for-each-ref", "refs/heads", "refs/tags"),
            "head": self.git("symbolic-ref", "HEAD"),
            "stash": self.git("stash", "list"),
        }
        for name in ("config", "index"):
            parts[name] = (self.top / ".git" / name).read_bytes().hex()
        return parts
