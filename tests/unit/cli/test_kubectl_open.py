"""The plugin of kubectl."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from kaigen.cli import kubectl_open
from kaigen.cli.main import run


@pytest.mark.promise("Substratus", "`kubectl open notebook -f`")
def test_kubectl_finds_the_plugin_by_its_name_and_it_opens_notebooks(capsys: pytest.CaptureFixture[str]) -> None:
    (script,) = entry_points(group="console_scripts", name="kubectl-open")
    assert script.load() is kubectl_open.main
    assert run(["notebook"], kubectl_open.command, "kubectl-open") == 2
    assert "give either the name of a Notebook or its spec with -f" in capsys.readouterr().err
