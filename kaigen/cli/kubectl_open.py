"""`kubectl open`: a plugin of kubectl that opens Notebooks."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kaigen.cli.main import execute
from kaigen.cli.notebook import command as notebook


@click.group("kubectl-open", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def command() -> None:
    """Open a Notebook of the cluster in the browser.

    `kubectl open notebook` is `kaigen notebook open`. Needs `pip install 'kaigen[cluster]'`.
    """


command.add_command(notebook.commands["open"], "notebook")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    execute(arguments, command, "kubectl-open")
