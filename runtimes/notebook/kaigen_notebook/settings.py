"""Settings of the server, from the environment of the container."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PORT = 8888
_MOST_SECONDS_BETWEEN_CHECKS = 300


class SettingsError(Exception):
    """A setting is missing or wrong. The text is for the user."""


def server_arguments(environment: Mapping[str, str]) -> list[str]:
    """Return the arguments of JupyterLab.

    Args:
        environment: `JUPYTER_TOKEN_FILE`, and `NOTEBOOK_IDLE_SECONDS` if what is idle shall end.

    Raises:
        SettingsError: there is no token, or a value is wrong.
    """
    return [
        # Every address, IPv4 and IPv6.
        "--ServerApp.ip=*",
        f"--ServerApp.port={PORT}",
        "--ServerApp.port_retries=0",
        "--ServerApp.open_browser=False",
        # The pod would start the server again.
        "--ServerApp.quit_button=False",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--ServerApp.identity_provider_class=kaigen_notebook.identity.TokenIdentity",
        f"--IdentityProvider.token={_token(environment)}",
        *_idle(environment),
    ]


def _token(environment: Mapping[str, str]) -> str:
    """Return the token. Jupyter would take the end of the line as a part of it, and an empty token for none needed."""
    name = environment.get("JUPYTER_TOKEN_FILE", "")
    if not name:
        raise SettingsError("set JUPYTER_TOKEN_FILE to a file with the token")
    try:
        token = Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"cannot read the token in {name}: {error}") from error
    if not token:
        raise SettingsError(f"the token in {name} is empty; anybody could run code")
    return token


def _idle(environment: Mapping[str, str]) -> list[str]:
    """Return the arguments that end idle kernels and terminals, and the server after the last of them."""
    given = environment.get("NOTEBOOK_IDLE_SECONDS", "0")
    if not given.isdecimal():
        raise SettingsError(f"NOTEBOOK_IDLE_SECONDS must be a number of seconds, not {given!r}")
    seconds = int(given)
    if seconds == 0:
        return []
    between = max(1, min(_MOST_SECONDS_BETWEEN_CHECKS, seconds // 4))
    return [
        f"--MappingKernelManager.cull_idle_timeout={seconds}",
        f"--MappingKernelManager.cull_interval={between}",
        # Also a kernel that an open page of a browser shows. One that computes is not idle.
        "--MappingKernelManager.cull_connected=True",
        f"--TerminalManager.cull_inactive_timeout={seconds}",
        f"--TerminalManager.cull_interval={between}",
        f"--ServerApp.shutdown_no_activity_timeout={seconds}",
    ]
