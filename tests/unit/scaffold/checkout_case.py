"""A Git checkout with a training program, for the tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, and return what it prints."""
    user = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    done = subprocess.run(["git", *user, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def checkout(root: Path) -> tuple[Path, str]:
    """Make a checkout of the branch `work`, which `origin` has; return the folder of its Dockerfile and its commit."""
    folder = root / "images" / "train"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    git(root, "init", "-q", "-b", "work")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Add the program")
    git(root, "remote", "add", "origin", "git@git.example.com:acme/train.git")
    git(root, "update-ref", "refs/remotes/origin/work", "HEAD")
    return folder, git(root, "rev-parse", "HEAD")
