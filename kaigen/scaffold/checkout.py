"""The Git repository of a local folder with a Dockerfile, as a cluster can build it."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from kaigen.diagnostics.errors import CheckFailed
from kaigen.git.runner import run_git
from kaigen.kinds.kind import GitSource
from kaigen.scaffold.place import find_place

_SSH = re.compile(r"(?:ssh://)?(?:[^@/:\s]+@)?(?P<host>[A-Za-z0-9.-]+)(?::(?:\d+/)?|/)(?P<path>[^\s:]+)")
"""A repository by SSH, as a URL or in the short form of scp."""


class Checkout(Struct, frozen=True):
    """The commit of a local folder.

    Attributes:
        source: the commit, as a build of the cluster fetches it.
        changed: whether the folder has changes that are not in the commit.
    """

    source: GitSource
    changed: bool


def read_checkout(folder: Path) -> Checkout:
    """Return the commit of a local folder with a Dockerfile.

    The URL of the remote `origin` is returned with HTTPS and without credentials, because BuildKit fetches by HTTP.

    Raises:
        CheckFailed: the folder has no Dockerfile or no commit, or the remote `origin` does not have the commit.
        InputError: there is no such folder.
    """
    path = _git(folder, "rev-parse", "--show-prefix")
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if path is None or commit is None:
        hint = "name a folder of a Git checkout, or an image with --image"
        raise CheckFailed(f"{folder} is in no Git repository with a commit", hint=hint)
    if not (folder / "Dockerfile").is_file():
        raise CheckFailed(f"{folder} has no Dockerfile", hint="name the folder with the Dockerfile of the program")
    url = _url(find_place(folder).repository)
    if not url:
        message = f"the Git repository of {folder} has no remote `origin` that a cluster can fetch"
        raise CheckFailed(message, hint="add one: git remote add origin https://HOST/REPOSITORY.git")
    if not _git(folder, "for-each-ref", "--contains", commit, "refs/remotes/origin"):
        message = f"the remote `origin` does not have the commit {commit[:12]} of {folder}"
        raise CheckFailed(message, hint="push the branch: git push origin HEAD")
    branch = _git(folder, "branch", "--show-current") or ""
    changed = bool(_git(folder, "status", "--porcelain", "--", "."))
    return Checkout(GitSource(url, commit, branch, path.rstrip("/")), changed)


def _git(folder: Path, *args: str) -> str | None:
    """Return what git prints; None if it fails."""
    found = run_git(folder, args)
    return found.out.decode("utf-8", "surrogateescape").strip() if found.ok else None


def _url(remote: str) -> str:
    """Return the URL of a remote by HTTP; empty if it has none."""
    if not re.match("https?://", remote):
        found = _SSH.fullmatch(remote)
        if found is None:
            return ""
        remote = f"https://{found['host']}/{found['path'].lstrip('/')}"
    remote = remote.rstrip("/")
    return remote if remote.endswith(".git") else f"{remote}.git"
