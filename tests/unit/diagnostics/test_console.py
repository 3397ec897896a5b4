"""The console belongs to one run."""

from __future__ import annotations

import pytest

from kaigen.cli.main import run


def test_quiet_and_color_of_one_run_do_not_reach_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-q", "--color", "always", "render", "nowhere.yaml"]) == 2
    assert "\x1b[" in capsys.readouterr().err
    assert run(["render", "nowhere.yaml"]) == 2
    assert "\x1b[" not in capsys.readouterr().err


def test_options_after_the_command_apply_to_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["render", "nowhere.yaml", "--color", "always"]) == 2
    assert "\x1b[" in capsys.readouterr().err
