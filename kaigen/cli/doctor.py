"""`kaigen doctor`: checks whether a cluster is ready for the apps of a repository."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

import click
from msgspec import to_builtins

from kaigen.cli.console import Console, table
from kaigen.cli.options import address_options, environment_option, read_one_config
from kaigen.cluster.connect import connect
from kaigen.config.settings import Config
from kaigen.doctor.examine import examine
from kaigen.doctor.model import Check, Status
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import Run
from kaigen.pipeline.sources import missing_repository

_COLORS: dict[Status, str] = {"ok": "green", "warning": "yellow", "failed": "red"}


@click.command("doctor")
@environment_option("the first")
@address_options
@click.option(
    "--namespace",
    "-n",
    default="",
    metavar="NAME",
    help="Namespace in which the user's rights are checked. Default: those of the apps.",
)
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(console: Console, environment: str, context: str, kubeconfig: str, namespace: str, output: str) -> None:
    """Check whether a cluster is ready.

    Checks the API server, GPU nodes and their device plugin, runtime and storage classes, the user's rights, the
    reaper, and whether this machine reaches the Hub and the buckets. In a repository also everything that `kaigen
    requirements --check` checks for an environment. Each result that is not ok has a line with its fix.

    Exits with 1 if a check failed, and with 3 if the cluster cannot be reached; warnings do not count. Writes
    nothing, and reads no values of Secrets. Needs `pip install 'kaigen[cluster]'`.
    """
    config = read_one_config(console, environment)
    compilation = None if missing_repository(config) else _compile(config)
    checks = []
    for check in examine(partial(connect, context, kubeconfig), config, compilation, namespace):
        checks.append(check)
        console.say(f"checked: {check.name}", level=1)
    if output == "json":
        console.write(json.dumps(to_builtins(checks), indent=2, ensure_ascii=False) + "\n")
    else:
        _print(console, checks)
    if checks[-1] is checks[0]:
        raise click.exceptions.Exit(3)
    failed = sum(check.status == "failed" for check in checks)
    if failed:
        console.say(f"{failed} of {len(checks)} checks failed")
        raise click.exceptions.Exit(1)


def _compile(config: Config) -> Compilation:
    return Run.load((), config, use_cache=False).compilation()


def _print(console: Console, checks: Sequence[Check]) -> None:
    lines = table([(check.status, check.name, check.detail) for check in checks])
    for line, check in zip(lines, checks, strict=True):
        colored = click.style(check.status, fg=_COLORS[check.status])
        console.out(line.replace(check.status, colored, 1) if console.colored(err=False) else line)
        if check.fix and check.status != "ok":
            console.out(f"         fix: {check.fix}")
