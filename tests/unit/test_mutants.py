"""The report of `make mutants`, and the copy of the tree it works in. Mutants themselves take minutes to run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import mutants
from tools.mutants import Mutant


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


def test_the_copy_follows_changed_and_removed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, work = tmp_path / "root", tmp_path / "work"
    monkeypatch.setattr(mutants, "ROOT", root)
    monkeypatch.setattr(mutants, "WORK", work)
    (root / "kaigen").mkdir(parents=True)
    (root / ".gitignore").write_text("ignored.py\n")
    (root / "kaigen" / "data.yaml").write_text("old\n")
    for name in ("same", "changed", "removed", "ignored"):
        (root / "kaigen" / f"{name}.py").write_text(f"{name}\n")
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    mutants.copy_tree()
    mutated = work / "mutants" / "kaigen" / "removed.py"
    mutated.parent.mkdir(parents=True)
    mutated.touch()
    data = work / "mutants" / "kaigen" / "data.yaml"
    data.touch()
    untouched = (work / "kaigen" / "same.py").stat().st_mtime_ns
    (root / "kaigen" / "changed.py").write_text("new\n")
    (root / "kaigen" / "removed.py").unlink()
    (root / "kaigen" / "data.yaml").write_text("new\n")
    mutants.copy_tree()
    assert sorted(path.name for path in (work / "kaigen").iterdir()) == ["changed.py", "data.yaml", "same.py"]
    assert (work / "kaigen" / "changed.py").read_text() == "new\n"
    assert (work / "kaigen" / "same.py").stat().st_mtime_ns == untouched
    assert not mutated.exists()
    assert not data.exists(), "mutmut copies data only when there is none"
