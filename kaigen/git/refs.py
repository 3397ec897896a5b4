"""What the branches and tags of a remote repository stand for."""

from __future__ import annotations

from pathlib import Path

from kaigen.git.remote import Git

DEFAULT_BRANCH = "HEAD"


def remote_commit(url: str, name: str) -> str | None:
    """Return the commit of a tag or a branch of a repository; None if it has neither.

    A tag takes precedence, as in Git itself. Credentials are those of the user's Git.

    Args:
        url: URL of the repository.
        name: short name of the tag or branch, or `HEAD` for the branch that a clone has.

    Raises:
        SystemFailure: the server cannot be reached, or does not show the repository.
    """
    git = Git.of(Path.cwd(), url)
    # An annotated tag is an object of its own; `^{}` is the commit that it names.
    named = [f"refs/tags/{name}^{{}}", f"refs/tags/{name}", f"refs/heads/{name}"]
    names = [name] if name == DEFAULT_BRANCH else named
    lines = git.run(["ls-remote", "--quiet", git.remote, *names]).decode("utf-8", "replace").splitlines()
    found = {ref: commit for commit, _, ref in (line.partition("\t") for line in lines)}
    return next((found[known] for known in names if known in found), None)
