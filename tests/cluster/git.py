"""Git repositories that the controllers of a plane sync from."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.keys import SigningKey

_IDENTITY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "kaigen"), ("EMAIL", "kaigen@example.invalid"))
}
# Ignore the Git configuration of the user (signing, hooks, default branches).
_ENV = _IDENTITY | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


class Repository:
    """A repository with one branch, ``main``."""

    def __init__(self, folder: Path) -> None:
        """Make an empty repository in a folder that does not exist yet."""
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")

    @property
    def url(self) -> str:
        """Where controllers on this machine fetch it from."""
        return self.folder.as_uri()

    def _git(self, *arguments: str, env: Mapping[str, str] = MappingProxyType({})) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **_ENV, **env},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str], message: str = "Change", key: SigningKey | None = None) -> str:
        """Make these files, and no others, the content of the branch.

        Args:
            files: Content by path.
            message: Of the commit.
            key: GnuPG key that signs it.

        Returns:
            The commit's hash.
        """
        for entry in self.folder.iterdir():
            if entry.is_dir() and entry.name != ".git":
                shutil.rmtree(entry)
            elif entry.is_file():
                entry.unlink()
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self._git("add", "--all")
        signing = [f"--gpg-sign={key.id}"] if key else []
        env = {"GNUPGHOME": str(key.home)} if key else {}
        self._git("commit", "--quiet", "--allow-empty", "--message", message, *signing, env=env)
        return self._git("rev-parse", "HEAD")
