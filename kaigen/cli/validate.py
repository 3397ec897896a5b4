"""`kaigen validate`: every problem of every file in one run."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kaigen.cli.console import Console
from kaigen.cli.options import checkout_folder, environment_option, paths_argument, read_configs
from kaigen.diagnostics.diagnostic import Severity
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.diagnostics import report
    from kaigen.pipeline import validate as pipeline_validate


@click.command("validate")
@paths_argument
@environment_option("all")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "sarif", "github", "gitlab", "junit"]),
    default="text",
    help="Output format.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if there is a warning.")
@click.pass_obj
def command(console: Console, paths: tuple[str, ...], environment: str, output: str, strict: bool) -> None:
    """Validate specs.

    Runs all checks of a render on the specs in PATH (default: those of kaigen.yaml) and writes nothing. Sends the tests
    of Endpoints to Envoy if it is installed. Exits with 2 if there is an error.
    """
    stdin = sys.stdin.buffer.read() if "-" in paths else None
    found, files = pipeline_validate.validate_environments(
        paths, read_configs(environment), stdin=stdin, folder=Path(), say=console.say
    )
    if output != "text":
        text = report.render_report(found, output, files=list(files), folder=checkout_folder()).rstrip("\n")
        if text:
            console.out(text)
    elif found:
        console.report(found, files)
    else:
        console.say(f"{len(files)} {'file' if len(files) == 1 else 'files'}: no problems")
    if any(item.severity is Severity.ERROR for item in found):
        raise click.exceptions.Exit(2)
    if strict and found:
        raise click.exceptions.Exit(1)
