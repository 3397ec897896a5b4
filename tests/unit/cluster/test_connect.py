"""Commands without the packages of the extra `kaigen[cluster]`, and without a cluster."""

from __future__ import annotations

import subprocess
import sys
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


@pytest.mark.parametrize("words", [["doctor"], ["status"], ["requirements", "--check"], ["job", "list"]])
def test_without_its_packages_no_command_ends_in_a_traceback(repository: Path, words: list[str]) -> None:
    program = (
        "import importlib.util, sys\n"
        "for name in ('kubernetes', 'urllib3', 'pathspec', 'websocket'): sys.modules[name] = None\n"
        "real = importlib.util.find_spec\n"
        "def find_spec(name, *more):\n"
        "    return None if sys.modules.get(name, 0) is None else real(name, *more)\n"
        "importlib.util.find_spec = find_spec\n"
        "from kaigen.cli.main import run\n"
        f"sys.exit(run({words!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=False)
    assert MISSING in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 3
