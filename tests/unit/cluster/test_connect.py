"""Commands without the packages of the extra `kaigen[cluster]`, and without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.cli.main import run
from kaigen.cluster import connect

MISSING = "working on a cluster needs more packages: pip install 'kaigen[cluster]'"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository without specs, as the working folder."""
    (tmp_path / "kaigen.yaml").write_text("{}\n")
    (tmp_path / "specs").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("words", [["job", "list"], ["notebook", "list"], ["status"], ["requirements", "--check"]])
def test_without_the_extra_the_command_that_installs_it_is_printed(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connect, "find_spec", lambda name: None)
    assert run(words) == 3
    printed = capsys.readouterr()
    assert printed.err == f"error: {MISSING}\n"
    assert printed.out == ""


@pytest.mark.usefixtures("repository")
def test_without_the_extra_the_check_of_the_cluster_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connect, "find_spec", lambda name: None)
    assert run(["doctor"]) == 3
    assert capsys.readouterr().out == f"failed  cluster  {MISSING}\n"
