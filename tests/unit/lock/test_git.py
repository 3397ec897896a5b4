"""Branches and tags of Git repositories that images are built from, in the lock."""

from __future__ import annotations

import pytest

from tests.unit.lock.conftest import DIGEST, Repository
from tests.unit.oci.web import Reply, Web
from tests.unit.pin.conftest import INDEX
from tests.unit.pin.test_git import bare, commit, server, spec
from tests.unit.publish.gitserver import Bare, GitServer

__all__ = ["bare", "server"]


def key(server: GitServer, name: str = "main") -> str:
    """Return the name of a branch in the lock."""
    return f"{server.url('train', user='')}@{name}"


def build_of(repository: Repository) -> str:
    """Return the rendered Job of the build."""
    return (repository.root / "rendered/ml/train/manifests/job-build.yaml").read_text()


def test_branch_is_locked_and_its_commit_built(repository: Repository, server: GitServer, bare: Bare) -> None:
    repository.write(spec(server, "main"))
    code, printed = repository.run("render")
    assert code == 2
    assert "KG0397" in printed
    first = bare.branches()["main"]
    code, printed = repository.run("lock")
    assert code == 0, printed
    assert f"{key(server)} is {first[:12]}" in printed
    assert repository.lock["git"] == {key(server): first}
    assert repository.run("render")[0] == 0
    assert f"--opt=context={server.url('train', user='')}#{first}" in build_of(repository)
    assert repository.run("lock", "--check")[0] == 0


def test_commit_stays_until_it_is_upgraded(repository: Repository, server: GitServer, bare: Bare) -> None:
    repository.write(spec(server, "main"))
    repository.run("lock")
    first = bare.branches()["main"]
    second = commit(bare, first)
    assert repository.run("lock")[0] == 0
    assert repository.lock["git"] == {key(server): first}
    assert repository.run("lock", "--check", "--upgrade")[0] == 1
    code, printed = repository.run("lock", "--upgrade", server.url("train", user=""))
    assert code == 0, printed
    assert f"{key(server)} moves from {first[:12]} to {second[:12]}" in printed
    assert repository.lock["git"] == {key(server): second}
    repository.run("render")
    assert second in build_of(repository)


def test_missing_and_unused_names_are_stale(repository: Repository, server: GitServer, bare: Bare) -> None:
    repository.write(spec(server, "main"))
    repository.run("lock")
    repository.write(spec(server, "v1"))
    code, printed = repository.run("lock", "--check")
    assert code == 1
    assert f"missing\t{key(server, 'v1')}" in printed
    assert f"unused\t{key(server)}" in printed
    repository.write(spec(server, bare.branches()["main"]))
    repository.run("lock")
    assert "git" not in repository.lock


def test_name_that_does_not_exist_is_reported_at_its_line(
    repository: Repository, server: GitServer, bare: Bare
) -> None:
    repository.write(spec(server, "nope"))
    code, printed = repository.run("lock")
    assert code == 3
    assert "specs/a.yaml:8:15" in printed
    assert "has no branch or tag `nope`" in printed
    assert not (repository.root / "kaigen.lock").exists()


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_registry_of_builds_is_the_environments(
    repository: Repository, server: GitServer, bare: Bare, environment: str
) -> None:
    repository.configure(
        "builds: {registry: registry.example.com/base}\nenvironments:\n"
        "  dev: {}\n  prod: {builds: {registry: registry.example.com/prod}}\n"
    )
    text = spec(server, bare.branches()["main"])
    repository.write(text.replace("    repository: registry.example.com/acme/train\n", ""))
    code, printed = repository.run("render", "--env", environment)
    assert code == 0, printed
    folder = repository.root / "rendered" / environment / "ml/train/manifests"
    path = "base" if environment == "dev" else "prod"
    assert f"--ref=registry.example.com/{path}/train:" in (folder / "job-build.yaml").read_text()


def test_build_without_any_registry_is_an_error(repository: Repository, server: GitServer, bare: Bare) -> None:
    text = spec(server, bare.branches()["main"])
    repository.write(text.replace("    repository: registry.example.com/acme/train\n", ""))
    code, printed = repository.run("render")
    assert code == 2
    assert "error[KG0387]" in printed
    assert printed.count("error[") == 1


def test_digest_of_a_built_image_is_locked_when_it_is_asked_for(
    repository: Repository, server: GitServer, bare: Bare, images: Web
) -> None:
    text = spec(server, bare.branches()["main"]).replace("registry.example.com/acme", f"{images.host}/acme")
    repository.write(text)
    repository.run("lock")
    run = repository.root / "rendered/ml/train/manifests/job.yaml"
    repository.run("render")
    (line,) = (line for line in run.read_text().split("\n") if "/acme/train:" in line)
    name = line.partition("image: ")[2].strip('"')
    assert name not in repository.lock["images"]
    assert repository.run("lock", "--check")[0] == 0

    answer, tag, pushed = images.answer, name.rpartition(":")[2], False

    def with_built(method: str, path: str, auth: str) -> Reply:
        if not path.startswith("/v2/acme/train/"):
            return answer(method, path, auth)
        is_there = pushed and path == f"/v2/acme/train/manifests/{tag}"
        return (200, {"Docker-Content-Digest": DIGEST}, INDEX) if is_there else (404, {}, b"")

    images.answer = with_built
    code, printed = repository.run("lock", "--built")
    assert code == 0
    assert f"not built yet: {name}" in printed
    assert name not in repository.lock["images"]

    pushed = True
    assert repository.run("lock", "--built")[0] == 0
    assert repository.lock["images"][name] == DIGEST
    repository.run("render")
    assert f"{name}@{DIGEST}" in run.read_text()
    assert f"--ref={name}" in build_of(repository)
    assert DIGEST not in build_of(repository).partition("--ref=")[2].partition("\n")[0]

    # It stays, also in a run that does not ask for it, until the build changes.
    assert repository.run("lock", "--upgrade")[0] == 0
    assert repository.lock["images"][name] == DIGEST
    assert repository.run("lock", "--check")[0] == 0
    repository.write(text + "    target: other\n")
    assert repository.run("lock")[0] == 0
    assert name not in repository.lock["images"]


SUBSTRATUS = """\
apiVersion: substratus.ai/v1
kind: Dataset
metadata: {{name: train}}
spec:
  build:
    git: {{url: "{url}"}}
"""


def test_default_branch_of_a_resource_of_substratus_is_locked(
    repository: Repository, server: GitServer, bare: Bare
) -> None:
    bare.git("symbolic-ref", "HEAD", "refs/heads/main")
    config = repository.root / "kaigen.yaml"
    registry = "dialects: {substratus: {registry: registry.example.com/acme}}\n"
    config.write_text(config.read_text() + registry)
    repository.write(SUBSTRATUS.format(url=server.url("train", user="")))
    code, printed = repository.run("render")
    assert code == 2
    assert "run `kaigen lock` to record the commit" in printed
    code, printed = repository.run("lock")
    assert code == 0, printed
    first = bare.branches()["main"]
    assert repository.lock["git"] == {key(server, "HEAD"): first}
    assert repository.run("render")[0] == 0
    job = repository.root / "rendered/ml/train-data-loader/manifests/job-build.yaml"
    assert f"--opt=context={server.url('train', user='')}#{first}" in job.read_text()
