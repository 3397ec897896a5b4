"""What `kaigen diff` says about a changed lock."""

from __future__ import annotations

import json
import subprocess

from runtimes.downloader.tests.hub import Hub
from tests.unit.lock.conftest import CONFIG, Repository, model, model_files


def commit(repository: Repository) -> None:
    """Commit everything."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *arguments], cwd=repository.root, check=True)


def test_a_moved_branch_is_explained_in_words(repository: Repository, hub: Hub) -> None:
    repository.write(model(hub))
    repository.run("lock")
    repository.run("render")
    commit(repository)
    code, printed = repository.run("diff")
    assert "kaigen.lock" not in printed
    before = hub.revisions["main"]
    after = hub.commit(model_files({**CONFIG, "max_position_embeddings": 65536}) | {"LICENSE": b"..."})
    hub.card = {"license": "llama3.1"}
    repository.run("lock", "--upgrade")
    code, printed = repository.run("diff")
    assert code == 0, printed
    said = " ".join(printed.split())
    assert f"owner/name@main moves from {before[:12]} to {after[:12]}" in said
    assert "1 file added (LICENSE), 1 file changed (config.json)" in said
    assert "licence apache-2.0 becomes llama3.1" in said
    assert "config.json changes max_position_embeddings" in said
    found = json.loads(repository.run("-q", "diff", "-o", "json")[1])
    (line,) = found["lock"]
    assert "licence apache-2.0 becomes llama3.1" in line
    code, printed = repository.run("diff", "-o", "markdown")
    assert "licence apache-2.0 becomes llama3.1" in printed
    assert "What `kaigen.lock` stands for:" in printed
