"""SSH remotes with the real OpenSSH client. Needs no control plane."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from kaigen.cli.main import run
from tests.cluster.tools.debian import install

DEMO = Path(__file__).parents[2] / "examples" / "demo"


def test_a_silent_ssh_server_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install("ssh")
    for name in ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setattr("kaigen.git.remote.STALL_LIMIT_S", 1)
    for name in ("kaigen.yaml", "specs"):
        subprocess.run(["cp", "-r", DEMO / name, tmp_path], check=True)
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-C", str(tmp_path)]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = f"ssh://git@127.0.0.1:{silent.getsockname()[1]}/x.git"
        assert run(["publish", "--env", "dev", "--remote", remote]) == 3
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.startswith("error: ")
    assert "cannot reach ssh://" in first
    assert len(rest) <= 1
