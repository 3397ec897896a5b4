"""The `kaigen` command: global options, lazily imported commands, and exit codes."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn, cast

import click

from kaigen import __version__
from kaigen.cli.console import Console
from kaigen.diagnostics.errors import InputError, KaigenError
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from click import shell_completion

    from kaigen.cli import habits, limits


COMMANDS: dict[str, str] = {
    "init": "Create a GitOps repository.",
    "upgrade": "Update a repository to the installed version of kaigen.",
    "validate": "Validate specs.",
    "render": "Render specs to manifests and Helm charts.",
    "diff": "Show what a change does, object by object.",
    "comment": "Create or update a comment in a pull request.",
    "graph": "Draw apps, their objects and their dependencies.",
    "publish": "Publish the rendered output to a deploy branch or an OCI registry.",
    "build": "Push folders that images are built from.",
    "images": "Build kaigen's images, and check those that a repository uses.",
    "sign": "Sign artifacts of a registry, or the rendered output.",
    "verify": "Verify the signatures of artifacts, or of the rendered output.",
    "check": "Check Kubernetes manifests.",
    "secrets": "List the Secrets that apps need, with their keys.",
    "tenants": "Print what tenants need.",
    "policies": "Print the rules of tenants as admission policies.",
    "requirements": "List what a cluster must have.",
    "doctor": "Check whether a cluster is ready.",
    "status": "Show the state of apps in a cluster.",
    "pin": "Pin branches and tags to commits and digests.",
    "lock": "Record what branches, tags and buckets stand for in `kaigen.lock`.",
    "prune": "Remove specs that have expired, and render.",
    "rename": "Give an app another name.",
    "mirror": "List the images, files of models and charts that an environment needs.",
    "gates": "Show whether the gates of an environment have passed.",
    "promote": "Promote revisions and images, or whole specs, from one environment to another.",
    "plan": "Plan the GPUs for a model.",
    "cost": "Show what the GPUs of apps cost.",
    "presets": "List the models in the catalogue, show one, or add one.",
    "gpus": "List GPUs and instance types, show one, or rank those that fit a model.",
    "job": "Run Jobs on a cluster, and show what they do.",
    "notebook": "Open Notebooks of a cluster, and turn them into Jobs.",
    "explain": "Explain a field of a kind, a code, a word, or the effective spec of an app.",
    "schema": "Print the JSON Schema of a kind.",
    "kinds": "List the kinds and dialects that kaigen reads.",
    "completion": "Print a shell completion script.",
}
"""Every command with its summary; it is the function `command` of the module `kaigen.cli.NAME`."""

_WAITING = frozenset(
    {
        *("build", "comment", "doctor", "gates", "images", "job", "lock", "mirror"),
        *("notebook", "pin", "promote", "publish", "sign", "status", "verify"),
    }
)
"""Commands that wait for other servers, with time limits of their own."""

COMPLETE = "_KAIGEN_COMPLETE"
"""Variable that a shell completion script sets."""


class LazyGroup(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in _WAITING:
            ctx.with_resource(limits.apply_limits())
        command = cast("click.Command", import_module(f"kaigen.cli.{cmd_name}").command)
        known = {parameter.name for parameter in command.params}
        command.params += [option for option in output_options() if option.name not in known]
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command for the arguments; report an unknown one with a suggestion."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(habits.unknown_command(args[0], list(COMMANDS)), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def output_options() -> list[click.Option]:
    """Return the options for verbosity and color, which work before and after the name of a command."""

    def option(*names: str, **attributes: Any) -> click.Option:
        return click.Option(names, callback=_set_output, expose_value=False, **attributes)

    return [
        option("-v", "--verbose", count=True, help="Print more."),
        option("-q", "--quiet", is_flag=True, help="Print errors only."),
        option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            help="Color the output; auto respects NO_COLOR and the terminal.",
        ),
    ]


def _set_output(context: click.Context, option: click.Parameter, value: Any) -> None:
    console = context.ensure_object(Console)
    if option.name == "color":
        console.color = value or console.color
    elif value:
        # Quiet wins over verbose, in either order.
        console.verbosity = -1 if option.name == "quiet" or console.verbosity < 0 else console.verbosity + value


def _change_directory(folder: str | None) -> None:
    if folder is None:
        return
    try:
        os.chdir(folder)
    except OSError as error:
        raise click.UsageError(f"--directory {folder}: {error.strerror}") from None


@click.group(
    cls=LazyGroup,
    params=output_options(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success; 1 a check failed; 2 invalid input or usage; 3 environment failure.",
)
@click.option(
    "-C",
    "--directory",
    metavar="DIR",
    callback=lambda _context, _option, value: _change_directory(value),
    is_eager=True,
    expose_value=False,
    help="Run as if started in this folder.",
)
@click.version_option(__version__, message="kaigen %(version)s")
def cli() -> None:
    """Compile YAML about AI work into Kubernetes manifests and Helm charts, for Argo CD and Flux to sync."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    execute(arguments, cli, "kaigen")


def execute(arguments: Sequence[str] | None, command: click.Command, name: str) -> NoReturn:
    """Run the command line of a program and exit.

    Args:
        arguments: those of the process when None.
        command: what the program runs.
        name: name of the program.
    """
    # A run creates almost no cycles of objects, so searching for them takes time and frees nothing: the peak memory of
    # 5,000 specs is the same with and without it.
    gc.disable()
    _open_streams()
    _exit(run(arguments, command, name))


def _exit(code: int) -> NoReturn:
    """Exit without freeing every object first, which takes a fifth of a short run; the system frees the memory."""
    threads = sys.modules.get("threading")
    if threads is not None and threads.active_count() > 1:
        sys.exit(code)  # Python waits for the threads of users' kinds, if they have any.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):  # the reader of the output has exited
            stream.flush()
    os._exit(code)


def _open_streams() -> None:
    """Replace standard streams that the caller closed, before a file takes their descriptors."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def run(arguments: Sequence[str] | None = None, command: click.Command | None = None, name: str = "kaigen") -> int:
    """Run the command line.

    Args:
        arguments: those of the process when None.
        command: what the program runs; kaigen's commands when None.
        name: name of the program.

    Returns:
        The exit code.
    """
    command = command or cli
    instruction = os.environ.get(COMPLETE) if command is cli else None
    if instruction:
        return shell_completion.shell_complete(cli, {}, "kaigen", COMPLETE, instruction)
    console = Console()
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        with command.make_context(name, given, obj=console) as context:
            command.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        if isinstance(error, click.UsageError):
            error = habits.explain_habit(error)
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except limits.LimitReached as error:
        console.failure(KaigenError(str(error), hint=error.hint))
        return KaigenError.exit_code
    except InputError as error:
        console.report(error.diagnostics)
        return error.exit_code
    except KaigenError as error:
        console.failure(error)
        return error.exit_code
    except BrokenPipeError:
        # The reader of the output has exited.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        console.failure(_system_failure(error))
        return KaigenError.exit_code
    return 0


def _system_failure(error: OSError) -> KaigenError:
    try:
        os.getcwd()
    except OSError:
        return KaigenError("the working folder no longer exists", hint="change to an existing folder")
    reason = error.strerror or str(error)
    return KaigenError(f"{os.fsdecode(error.filename)}: {reason}" if error.filename else reason)
