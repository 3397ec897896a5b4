"""The server: JupyterLab with the settings of the container."""

from __future__ import annotations

import os
import sys

from jupyterlab.labapp import LabApp

from kaigen_notebook.settings import SettingsError, server_arguments

WRONG_SETTINGS = 13
"""Exit code for settings that are wrong, as of kaigen's other runtimes."""


def run() -> None:
    """Serve until the server is stopped or idle for too long."""
    try:
        arguments = server_arguments(os.environ)
    except SettingsError as error:
        print(f"kaigen-notebook: {error}", file=sys.stderr)
        sys.exit(WRONG_SETTINGS)
    # In this process only: neither the list of processes nor the environment of kernels shows the token.
    LabApp.launch_instance(argv=[*arguments, *sys.argv[1:]])
