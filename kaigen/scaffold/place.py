"""Where a repository of kaigen is: its folder, the Git repository around it, and the forge."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from kaigen.config.gitops import syncer_url
from kaigen.diagnostics.errors import KaigenError
from kaigen.git.runner import run_git

_GITLAB_FILE = ".gitlab-ci.yml"


class Place(Struct, frozen=True):
    """Where a repository of kaigen is.

    Attributes:
        root: folder of kaigen.yaml.
        top: folder of the Git repository; `root` outside one.
        repository: URL of the Git repository's remote `origin` as Argo CD and Flux read it, without credentials; empty
            if there is none, or none that a cluster can reach.
    """

    root: Path
    top: Path
    repository: str = ""

    @property
    def below(self) -> str:
        """The folder of kaigen.yaml in the Git repository; empty for its top."""
        folder = self.root.resolve().relative_to(self.top.resolve()).as_posix()
        return "" if folder == "." else folder

    @property
    def is_gitlab(self) -> bool:
        """Whether pipelines run in GitLab."""
        return "gitlab" in self.repository or (self.top / _GITLAB_FILE).exists()


def find_place(root: Path) -> Place:
    """Return the place of a repository that may not exist yet."""
    resolved = root.resolve()
    for folder in (resolved, *resolved.parents):
        if (folder / ".git").exists():
            # Relative to the working folder, because messages show its files.
            top = root if folder == resolved else Path(os.path.relpath(folder))
            return Place(root, top, _origin(folder))
    return Place(root, root)


def _origin(top: Path) -> str:
    """Return the URL of the remote for a cluster: no file of this machine, and not in the short form of SSH."""
    try:
        result = run_git(top, ["remote", "get-url", "origin"])
    except KaigenError:
        return ""
    url = result.out.decode("utf-8", "replace").strip() if result.ok else ""
    if re.match("https?://", url):
        parts = urlsplit(url)
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return "" if re.search(r"\s", url) or url.startswith(("/", ".")) else syncer_url(url)
