"""The token, and the end of what is idle."""

from __future__ import annotations

from pathlib import Path

import pytest
from kaigen_notebook.settings import SettingsError, server_arguments


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """Return a file with a token, and the end of line that editors write."""
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    return file


def test_the_token_is_that_of_the_file_without_its_end_of_line(token: Path) -> None:
    assert "--IdentityProvider.token=s3cret" in server_arguments({"JUPYTER_TOKEN_FILE": str(token)})


@pytest.mark.parametrize("content", ["", " \n"])
def test_an_empty_token_is_refused(token: Path, content: str) -> None:
    token.write_text(content)
    with pytest.raises(SettingsError, match="is empty"):
        server_arguments({"JUPYTER_TOKEN_FILE": str(token)})


def test_no_server_starts_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="set JUPYTER_TOKEN_FILE"):
        server_arguments({})
    with pytest.raises(SettingsError, match="cannot read the token"):
        server_arguments({"JUPYTER_TOKEN_FILE": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("seconds", "between"), [("7200", 300), ("60", 15), ("2", 1)], ids=["hours", "a minute", "seconds"]
)
def test_kernels_terminals_and_the_server_end_after_the_same_time(token: Path, seconds: str, between: int) -> None:
    found = server_arguments({"JUPYTER_TOKEN_FILE": str(token), "NOTEBOOK_IDLE_SECONDS": seconds})
    assert found[-6:] == [
        f"--MappingKernelManager.cull_idle_timeout={seconds}",
        f"--MappingKernelManager.cull_interval={between}",
        "--MappingKernelManager.cull_connected=True",
        f"--TerminalManager.cull_inactive_timeout={seconds}",
        f"--TerminalManager.cull_interval={between}",
        f"--ServerApp.shutdown_no_activity_timeout={seconds}",
    ]


def test_nothing_ends_by_default_and_a_wrong_time_is_refused(token: Path) -> None:
    environment = {"JUPYTER_TOKEN_FILE": str(token)}
    assert not any("cull" in each for each in server_arguments(environment))
    with pytest.raises(SettingsError, match="must be a number of seconds, not '2h'"):
        server_arguments({**environment, "NOTEBOOK_IDLE_SECONDS": "2h"})
