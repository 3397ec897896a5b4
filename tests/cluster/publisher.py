"""A team that publishes from a clone to a Git server with a password, and to a registry."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

from tests.cluster.team import Team
from tests.unit.publish.gitserver import Bare, GitServer, git

BRANCH = "deploy"
"""Branch that is published to."""


class Publisher:
    """A team that publishes from a clone to a Git server with a password.

    Attributes:
        team: its specs, in the clone.
        bare: what it publishes to, seen from the server.
    """

    def __init__(self, folder: Path, server: GitServer, **publish: object) -> None:
        """Create the clone, and an empty repository on the server.

        Args:
            folder: the clone; it does not exist yet.
            server: the Git server.
            publish: the block `publish` of kaigen.yaml, except the branch.
        """
        name = f"t{uuid.uuid4().hex[:6]}"
        self.bare: Bare = server.make(name)
        settings = {"publish": {"branch": BRANCH, **publish}}
        self.team = Team(folder, server.url(name, user=""), name, {}, settings=settings)
        folder.mkdir()
        git(folder, "init", "--quiet", "--initial-branch=main")
        git(folder, "remote", "add", "origin", server.url(name))
        git(folder, "config", "user.name", "Ada")
        git(folder, "config", "user.email", "ada@example.invalid")

    def publish(self) -> tuple[str, str]:
        """Commit the specs and publish them, as a pipeline does.

        Returns:
            The commit on the deploy branch, and what kaigen printed.
        """
        self.team.write()
        git(self.team.folder, "add", "--all")
        git(self.team.folder, "commit", "--quiet", "--message", "Change")
        done = subprocess.run(
            [sys.executable, "-m", "kaigen", "publish"],
            cwd=self.team.folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return self.bare.branches()[BRANCH], done.stdout

    def files(self) -> dict[str, str]:
        """What is on the deploy branch."""
        return self.bare.files(BRANCH)
