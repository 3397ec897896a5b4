"""`kaigen diff` where specs are in a submodule: the base has them too, or the run fails."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.security.hostile import CONFIG, JOB, Repository

CHANGED = JOB.replace("1.0", "2.0")


def a_repository(folder: Path, files: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> Repository:
    """Return a repository with these files only."""
    found = Repository(folder, capsys)
    shutil.rmtree(folder / "specs")
    (folder / "kaigen.yaml").unlink()
    found.write(files)
    found.commit()
    return found


def add(repository: Repository, other: Repository, path: str) -> None:
    """Add a submodule and commit it."""
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), path)
    repository.commit()


@pytest.fixture
def team(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Repository:
    """A repository with the specs of a team, in a folder of it."""
    (tmp_path / "team").mkdir()
    return a_repository(tmp_path / "team", {"jobs/a.yaml": JOB.replace("evaluate}", "of-team}")}, capsys)


def changed(folder: Repository, path: str) -> None:
    """Commit another image in the checkout of the submodule, and the submodule's commit."""
    place = folder.folder / path
    file = place / "jobs/a.yaml"
    file.write_text(file.read_text().replace("1.0", "2.0"))
    folder.git("-C", path, "commit", "--quiet", "--all", "--message=Change")


@pytest.mark.parametrize(
    ("path", "config"),
    [
        ("specs/team", CONFIG),
        ("vendor/team", f"{CONFIG}specs: [specs, vendor/team]\n"),
        ("vendor/team", f"{CONFIG}specs: [specs, vendor/team/jobs]\n"),
    ],
)
def test_specs_in_a_submodule_are_compared(repository: Repository, team: Repository, path: str, config: str) -> None:
    repository.write({"kaigen.yaml": config})
    add(repository, team, path)
    changed(repository, path)
    repository.commit()
    done = repository.kaigen("diff", "--base", "HEAD~1")
    assert done.code == 0, done.err
    assert "example.com/evaluate:1.0" in done.out
    assert "example.com/evaluate:2.0" in done.out
    assert "1 app changes" in done.out, done.out


def test_specs_in_a_submodule_of_a_submodule_are_compared(
    repository: Repository, team: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "teams").mkdir()
    teams = a_repository(tmp_path / "teams", {"README.md": "Teams\n"}, capsys)
    add(teams, team, "a")
    add(repository, teams, "specs/teams")
    repository.git("-c", "protocol.file.allow=always", "submodule", "-q", "update", "--init", "--recursive")
    changed(repository, "specs/teams/a")
    repository.git("-C", "specs/teams", "commit", "--quiet", "--all", "--message=Change")
    repository.commit()
    done = repository.kaigen("diff", "--base", "HEAD~1")
    assert done.code == 0, done.err
    assert "1 app changes" in done.out, done.out


def test_a_commit_of_a_submodule_that_the_clone_does_not_have_is_an_error(
    repository: Repository, team: Repository
) -> None:
    add(repository, team, "specs/team")
    shutil.rmtree(repository.folder / "specs/team")
    (repository.folder / "specs/team").mkdir()
    done = repository.kaigen("diff", "--base", "HEAD")
    assert (done.code, "KG0805" in done.err, "specs/team" in done.err) == (2, True, True), done.text
    # A commit that nobody pushed.
    repository.git("update-index", "--cacheinfo", f"160000,{'1' * 40},specs/team")
    repository.git("commit", "--quiet", "--message=Change")
    done = repository.kaigen("diff", "--base", "HEAD")
    assert (done.code, "111111111111, which this clone does not have" in done.err) == (2, True), done.text


def test_a_submodule_without_specs_may_be_missing(repository: Repository, team: Repository) -> None:
    add(repository, team, "website/theme")
    shutil.rmtree(repository.folder / "website/theme")
    repository.write({"specs/evaluate.yaml": CHANGED})
    done = repository.kaigen("diff", "--base", "HEAD")
    assert done.code == 0, done.err
    assert "1 app changes" in done.out, done.out


def test_specs_that_move_to_another_folder_are_compared(repository: Repository) -> None:
    repository.commit()
    (repository.folder / "specs").rename(repository.folder / "apps")
    repository.write({"kaigen.yaml": f"{CONFIG}specs: [apps]\n"})
    done = repository.kaigen("diff", "--base", "HEAD")
    assert done.code == 0, done.err
    assert "evaluate" not in done.out, done.out


def test_the_base_has_its_own_catalogue(repository: Repository) -> None:
    prices = "apiVersion: kaigen.dev/v1alpha1\nkind: Catalog\ncurrency: EUR\nprices: {p5.48xlarge: 55.04}\n"
    repository.write({"kaigen.yaml": f"{CONFIG}catalog: rows\n", "rows/prices.yaml": prices})
    repository.commit()
    repository.write({"specs/evaluate.yaml": CHANGED})
    done = repository.kaigen("diff", "--base", "HEAD")
    assert done.code == 0, done.text
    assert "1 app changes" in done.out, done.out
    assert "invalid" not in done.err
