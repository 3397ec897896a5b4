"""Branches and tags of `build.git`, pinned and locked with a real Git server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.pin.conftest import Repository
from tests.unit.publish.gitserver import Bare, GitServer, log_in, serving

SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: train}}
spec:
  build:
    git:
      url: {url}
      commit: {commit} # ours
    repository: registry.example.com/acme/train
"""
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    """A Git server with a password that the user's Git knows."""
    (tmp_path / "server").mkdir()
    log_in(monkeypatch)
    with serving(tmp_path / "server") as running:
        yield running


@pytest.fixture
def bare(server: GitServer) -> Bare:
    """A repository with a commit on `main`, an annotated tag `v1`, and a plain tag `main-2`."""
    made = server.make("train")
    first = commit(made)
    made.git(*IDENTITY, "tag", "-a", "-m", "v1", "v1", first)
    made.git("tag", "main-2", commit(made, first))
    return made


def commit(bare: Bare, parent: str = "") -> str:
    """Add an empty commit to `main`."""
    tree = bare.git("hash-object", "-t", "tree", "-w", "/dev/null").strip()
    parents = ["-p", parent] if parent else []
    made = bare.git(*IDENTITY, "commit-tree", tree, "-m", "one", *parents).strip()
    bare.git("update-ref", "refs/heads/main", made)
    return made


def spec(server: GitServer, name: str) -> str:
    return SPEC.format(url=server.url("train", user=""), commit=name)


def test_branch_is_replaced_by_its_commit(repository: Repository, server: GitServer, bare: Bare) -> None:
    repository.write(spec(server, "main"))
    result = repository.pin()
    assert result.exit_code == 0, result.output
    first = bare.branches()["main"]
    assert repository.text() == spec(server, first).replace("# ours", "# main; ours")
    second = commit(bare, first)
    assert repository.pin().exit_code == 0
    assert first in repository.text()
    assert repository.pin("--update").exit_code == 0
    assert repository.text() == spec(server, second).replace("# ours", "# main; ours")


def test_annotated_tag_is_the_commit_that_it_names(repository: Repository, server: GitServer, bare: Bare) -> None:
    repository.write(spec(server, "v1"))
    assert repository.pin().exit_code == 0
    assert bare.git("rev-parse", "v1^{commit}").strip() in repository.text()
    assert bare.git("rev-parse", "v1").strip() not in repository.text()


def test_tag_takes_precedence_over_a_branch(repository: Repository, server: GitServer, bare: Bare) -> None:
    bare.git("branch", "v1", "main")
    repository.write(spec(server, "v1"))
    assert repository.pin().exit_code == 0
    assert bare.git("rev-parse", "v1^{commit}").strip() in repository.text()


def test_end_of_a_name_is_not_another_name(repository: Repository, server: GitServer, bare: Bare) -> None:
    bare.git("update-ref", "refs/heads/refs/heads/other", "main")
    repository.write(spec(server, "other"))
    result = repository.pin()
    assert "has no branch or tag `other`" in str(result.exception)
    assert repository.text() == spec(server, "other")


def test_server_that_refuses_is_reported_at_the_field(
    repository: Repository, server: GitServer, bare: Bare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "0")
    repository.write(spec(server, "main"))
    result = repository.pin()
    assert "specs/a.yaml:8:15" in str(result.exception)
    assert repository.text() == spec(server, "main")


def test_check_asks_no_server(repository: Repository, server: GitServer, bare: Bare) -> None:
    repository.write(spec(server, "main"))
    asked = len(server.asked)
    result = repository.pin("--check")
    assert "spec.build.git.commit" in result.output
    assert len(server.asked) == asked
