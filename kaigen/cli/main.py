"""The `kaigen` command: global options, lazy commands, and the one place where errors become exit codes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

import click

from kaigen import __version__
from kaigen.cli.console import Console
from kaigen.load.diagnostics import InputError, KaigenError

COMMANDS: dict[str, str] = {
    "init": "Start a GitOps repository in a folder.",
    "validate": "Tell every problem of every spec.",
    "render": "Write manifests and charts of the specs.",
    "diff": "Tell what a change does, object by object.",
    "explain": "Explain a field of a kind, as kubectl explain does.",
    "schema": "Print the JSON Schema of a kind.",
    "kinds": "List the kinds and dialects that kaigen reads.",
    "completion": "Print a shell's completion script.",
}
"""Every command and what it is for; its module is `kaigen.cli.NAME`, its function `command`."""


COMPLETE = "_KAIGEN_COMPLETE"
"""Variable in which a shell's completion script says what it wants to know."""


class LazyGroup(click.Group):
    """A group that knows its commands' names and purposes without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a user meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and give the command."""
        if cmd_name not in COMMANDS:
            return None
        return cast("click.Command", import_module(f"kaigen.cli.{cmd_name}").command)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command of these arguments; an unknown one is told with the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from kaigen.load.suggest import did_you_mean

            hint = did_you_mean(args[0], COMMANDS)
            raise click.UsageError(f"no such command: {args[0]}" + (f"; {hint}" if hint else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done; 1 a check found something; 2 bad input or usage; 3 the surroundings failed.",
)
@click.version_option(__version__, message="kaigen %(version)s")
@click.option("-v", "--verbose", count=True, help="Say more.")
@click.option("-q", "--quiet", is_flag=True, help="Say only what is wrong.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colours in what is printed; auto respects NO_COLOR and the terminal.",
)
@click.pass_context
def cli(ctx: click.Context, verbose: int, quiet: bool, color: str) -> None:
    """Compile YAML about AI work into Kubernetes manifests and Helm charts, for Argo CD and Flux to sync."""
    ctx.obj = Console(verbosity=-1 if quiet else verbose, color=color)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    # A run is short and makes few cycles: collecting them often costs more than it frees.
    gc.set_threshold(50_000, 20, 100)
    # Looking for pydantic plugins in every installed package takes a tenth of a render, and kaigen has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code.
    """
    asked = os.environ.get(COMPLETE)
    if asked:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "kaigen", COMPLETE, asked)
    console = Console()
    try:
        context = cli.make_context("kaigen", list(sys.argv[1:] if arguments is None else arguments))
        with context:
            cli.invoke(context)
            console = context.obj or console
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except InputError as error:
        _console(console).report(error.diagnostics)
        return error.exit_code
    except KaigenError as error:
        _console(console).failure(error)
        return error.exit_code
    except BrokenPipeError:
        # Who reads our output has gone; nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        _console(console).failure(KaigenError(f"{error.filename or 'system'}: {error.strerror or error}"))
        return KaigenError.exit_code
    return 0


def _console(fallback: Console) -> Console:
    context = click.get_current_context(silent=True)
    return context.obj if context is not None and context.obj is not None else Console.current or fallback
