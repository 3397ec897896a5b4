"""A hostile `output` in kaigen.yaml writes nothing outside the repository, and nothing into `.git`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.security.hostile import CONFIG, Repository


@pytest.fixture
def victim(repository: Repository) -> Path:
    """Another repository of the same user, with a rendered tree."""
    folder = repository.folder.parent / "victim"
    (folder / "rendered").mkdir(parents=True)
    (folder / "rendered" / "job.yaml").write_text("kind: Job\n")
    (folder / "rendered" / ".kaigen-index").write_text("# kaigen index 1: test\njob.yaml\n")
    return folder


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("link", "target", "output"),
    [
        ("d", "../victim/rendered", "d"),
        ("d", "../victim", "d/rendered"),
        ("d", "../victim", "d/new"),
        ("d", ".", "d"),
        ("d", ".git", "d/hooks"),
    ],
)
@pytest.mark.parametrize("arguments", [("render",), ("render", "--check")])
def test_a_linked_output_is_refused(
    repository: Repository, victim: Path, link: str, target: str, output: str, arguments: tuple[str, ...]
) -> None:
    (repository.folder / link).symlink_to(target)
    repository.write({"kaigen.yaml": CONFIG + f"output: {output}\n"})
    before = files(victim), files(repository.folder / ".git")
    done = repository.kaigen(*arguments)
    assert (done.code, "KG0602" in done.err) == (2, True), done.err
    assert (files(victim), files(repository.folder / ".git")) == before
    assert (victim / "rendered" / "job.yaml").read_text() == "kind: Job\n"


def test_the_linked_folder_of_an_environment_is_refused(repository: Repository, victim: Path) -> None:
    (repository.folder / "rendered").symlink_to("../victim")
    repository.write({"kaigen.yaml": CONFIG + "environments: {rendered: {}}\n"})
    before = files(victim)
    done = repository.kaigen("render")
    assert (done.code, "KG0602" in done.err) == (2, True), done.err
    assert files(victim) == before


def test_a_tree_of_a_deleted_environment_is_not_pruned_through_a_link(repository: Repository, victim: Path) -> None:
    (repository.folder / "rendered").mkdir()
    (repository.folder / "rendered" / "gone").symlink_to("../../victim/rendered")
    repository.write({"kaigen.yaml": CONFIG + "environments: {prod: {}}\n"})
    before = files(victim)
    done = repository.kaigen("render")
    assert (done.code, "KG0602" in done.err) == (2, True), done.err
    assert files(victim) == before


@pytest.mark.parametrize("output", [".git", ".git/hooks", ".GIT/x", "sub/.git"])
def test_an_output_in_the_folder_of_git_is_refused(repository: Repository, output: str) -> None:
    repository.write({"kaigen.yaml": CONFIG + f"output: {output}\n"})
    before = files(repository.folder)
    done = repository.kaigen("render")
    assert (done.code, "KG0602" in done.err) == (2, True), done.err
    assert files(repository.folder) == before


def test_a_folder_named_on_the_command_line_may_be_outside(repository: Repository) -> None:
    done = repository.kaigen("render", "-o", "../elsewhere")
    assert done.code == 0, done.err
    assert (repository.folder.parent / "elsewhere" / ".kaigen-index").is_file()
