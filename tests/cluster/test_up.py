"""The plane that is started by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.tools.parts import locate

_ROOT = Path(__file__).parents[2]


def test_a_plane_goes_on_between_up_and_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def by_hand(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.cluster", *arguments]
        return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)

    try:
        export = by_hand("up").stdout.strip()
        assert by_hand("up").stdout.strip() == export
        name, _, kubeconfig = export.removeprefix("export ").partition("=")
        answer = subprocess.run(
            [locate()["kubectl"], "get", "--raw", "/readyz"],
            env=os.environ | {name: kubeconfig},
            capture_output=True,
            text=True,
            check=True,
        )
        assert (name, answer.stdout) == ("KUBECONFIG", "ok")
    finally:
        down = by_hand("down")
    assert down.stderr == "the plane is down\n"
    assert by_hand("down").stderr == "no plane is up\n"
    assert not Path(kubeconfig).exists()
