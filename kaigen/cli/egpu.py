"""`egpu`: `kaigen job` with the names and defaults of the Ephemeral GPU operator's command."""

from __future__ import annotations

from collections.abc import Sequence

from kaigen.cli.job import group
from kaigen.cli.live.flavor import EGPU
from kaigen.cli.main import execute

command = group(
    EGPU,
    "egpu",
    "Run image inference on GPUs, with the options of the Ephemeral GPU operator.\n\nThe same as `kaigen job` with "
    "other names and defaults. Needs `pip install 'kaigen[cluster]'`.",
)
command.context_settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    execute(arguments, command, "egpu")
