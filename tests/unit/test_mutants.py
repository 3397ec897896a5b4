"""The report of `make mutants`, and the copy of the tree it works in. Mutants themselves take minutes to run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import mutants
from tools.mutants import DOWNLOADER, KAIGEN, Mutant, Project, project_of


def test_report_lists_survivors_and_the_share_killed_by_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutants, "change", lambda name: f"<{name}>")
    made = [
        Mutant("a.1", "a", "killed"),
        Mutant("a.2", "a", "timeout"),
        Mutant("a.3", "a", "survived"),
        Mutant("b.1", "b", "no tests"),
        Mutant("b.2", "b", "survived"),
    ]
    mutants.report(made, listed=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == ["a.3 (survived)", "  <a.3>", "b.1 (no tests)", "  <b.1>", "... and 1 more"]
    assert [line.split() for line in lines[6:]] == [
        [*("a", "2", "of", "3", "killed:", "66.7", "%")],
        [*("all", "2", "of", "5", "killed:", "40.0", "%")],
        [*("b", "0", "of", "2", "killed:", "0.0", "%")],
    ]


@pytest.mark.parametrize("project", [KAIGEN, DOWNLOADER], ids=["kaigen", "downloader"])
def test_what_is_mutated_and_what_tests_it_exist(project: Project) -> None:
    packages = [project.root / name.replace(".", "/") for name in project.packages]
    selection = project.settings["pytest_add_cli_args_test_selection"]
    missing = [path for path in (*packages, *(project.root / name for name in selection)) if not path.exists()]
    assert missing == []
    assert len(selection) == len(set(selection))


def test_each_package_that_is_mutated_is_tested_by_the_folder_of_its_name() -> None:
    selection = KAIGEN.settings["pytest_add_cli_args_test_selection"]
    assert [name for name in KAIGEN.packages if f"tests/unit/{name.removeprefix('kaigen.')}" not in selection] == []


@pytest.mark.parametrize(
    ("packages", "project"),
    [
        ([], KAIGEN),
        (["kaigen.diff"], KAIGEN),
        (["kaigen.compile.topology", "kaigen.config.merge"], KAIGEN),
        (["kaigen_downloader"], DOWNLOADER),
        (["kaigen_downloader.upload"], DOWNLOADER),
        (["kaigen.diff", "kaigen_downloader"], None),
        (["kaigen"], None),
        (["kaigen.different"], None),
        (["kaigen_downloaders"], None),
    ],
)
def test_packages_are_of_one_project(packages: list[str], project: Project | None) -> None:
    assert project_of(packages) == project


def test_the_copy_follows_changed_and_removed_files(tmp_path: Path) -> None:
    root, work = tmp_path / "root", tmp_path / "work"
    project = Project(root, work)
    (root / "kaigen").mkdir(parents=True)
    (root / ".gitignore").write_text("ignored.py\n")
    (root / "kaigen" / "data.yaml").write_text("old\n")
    for name in ("same", "changed", "removed", "ignored"):
        (root / "kaigen" / f"{name}.py").write_text(f"{name}\n")
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    mutants.copy_tree(project)
    mutated = work / "mutants" / "kaigen" / "removed.py"
    mutated.parent.mkdir(parents=True)
    mutated.touch()
    data = work / "mutants" / "kaigen" / "data.yaml"
    data.touch()
    untouched = (work / "kaigen" / "same.py").stat().st_mtime_ns
    (root / "kaigen" / "changed.py").write_text("new\n")
    (root / "kaigen" / "removed.py").unlink()
    (root / "kaigen" / "data.yaml").write_text("new\n")
    mutants.copy_tree(project)
    assert sorted(path.name for path in (work / "kaigen").iterdir()) == ["changed.py", "data.yaml", "same.py"]
    assert (work / "kaigen" / "changed.py").read_text() == "new\n"
    assert (work / "kaigen" / "same.py").stat().st_mtime_ns == untouched
    assert not mutated.exists()
    assert not data.exists(), "mutmut copies data only when there is none"
