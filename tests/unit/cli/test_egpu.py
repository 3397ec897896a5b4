"""The command of the Ephemeral GPU operator."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from kaigen.cli import egpu
from kaigen.cli.main import run


@pytest.mark.promise("Ephemeral GPU", "`make cli` installs `egpu`")
def test_the_package_installs_egpu_with_the_commands_of_the_operator(capsys: pytest.CaptureFixture[str]) -> None:
    (script,) = entry_points(group="console_scripts", name="egpu")
    assert script.load() is egpu.main
    assert run(["--help"], egpu.command, "egpu") == 0
    printed = capsys.readouterr().out
    for command in ("create", "list", "get", "watch", "cleanup", "delete", "copy-file", "debug"):
        assert f"\n  {command} " in printed
