"""`kaigen completion`: completion scripts for shells."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from kaigen.cli.console import Console
from kaigen.cli.main import COMPLETE, cli


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_obj
def command(console: Console, shell: str) -> None:
    """Print a shell completion script.

    For bash, add `eval "$(kaigen completion bash)"` to ~/.bashrc; for zsh, the same to ~/.zshrc; for fish, write the
    output to ~/.config/fish/completions/kaigen.fish.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    console.write(kind(cli, {}, "kaigen", COMPLETE).source())
