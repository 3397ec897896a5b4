"""A Git server with a password, and clones that publish to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.publish.clones import Clone
from tests.unit.publish.gitserver import Bare, GitServer, serving


@pytest.fixture(autouse=True)
def _own_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the user's Git configuration and cache."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("KAIGEN_CACHE_DIR", "off")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    """A Git server with a password."""
    (tmp_path / "server").mkdir()
    with serving(tmp_path / "server") as running:
        yield running


@pytest.fixture
def bare(server: GitServer) -> Bare:
    """The repository that is published to, seen from the server."""
    return server.make("deploy")


@pytest.fixture
def place() -> str:
    """The folder of kaigen.yaml in the repository; tests whose code uses paths are run with another one, too."""
    return ""


@pytest.fixture
def make_clone(tmp_path: Path, server: GitServer, bare: Bare, place: str) -> Callable[[str], Clone]:
    """Makes clones of one repository of specs, with the server's repository as `origin`."""

    def make(name: str = "clone") -> Clone:
        first = tmp_path / "clone"
        return Clone.make(tmp_path / name, server.url("deploy"), first if first.exists() else None, place)

    return make


@pytest.fixture
def clone(make_clone: Callable[[str], Clone]) -> Clone:
    """A clone with one commit."""
    return make_clone("clone")
