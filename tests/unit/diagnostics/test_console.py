"""The console belongs to one run."""

from __future__ import annotations

import sys

import pytest

from kaigen.cli.console import Console
from kaigen.cli.main import run
from kaigen.diagnostics.diagnostic import Diagnostic


def test_quiet_and_color_of_one_run_do_not_reach_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-q", "--color", "always", "render", "nowhere.yaml"]) == 2
    assert "\x1b[" in capsys.readouterr().err
    assert run(["render", "nowhere.yaml"]) == 2
    assert "\x1b[" not in capsys.readouterr().err


def test_options_after_the_command_apply_to_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["render", "nowhere.yaml", "--color", "always"]) == 2
    assert "\x1b[" in capsys.readouterr().err


@pytest.mark.parametrize("terminal", [True, False])
def test_a_report_on_a_terminal_ends_with_the_command_that_explains_a_code(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    Console(color="never").report([Diagnostic("KG0118", "a space is missing")])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == ("explain a code with: kaigen explain KG0118" if terminal else "1 error")
