"""`kaigen init`: a GitOps repository to start from."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from kaigen.cli.console import Console


@click.command("init")
@click.argument("folder", metavar="[DIR]", default=".")
@click.option(
    "--profile", default="generic", show_default=True, help="Kind of cluster that the output is for."
)
@click.option("--namespace", default="ml", show_default=True, help="Namespace of the apps.")
@click.pass_obj
def command(console: Console, folder: str, profile: str, namespace: str) -> None:
    """Start a GitOps repository in a folder.

    Writes into DIR (default: here) kaigen.yaml, an example in specs/, schemas and settings for editors, a CI
    workflow and pre-commit hooks. Nothing that exists is overwritten: when one of these files is there already,
    nothing is written.
    """
    from kaigen.scaffold.repository import start_repository

    root = Path(folder)
    for path in start_repository(root, profile=profile, namespace=namespace):
        console.say(f"wrote {root / path}")
    where = "" if root.resolve() == Path.cwd() else f"cd {shlex.quote(folder)} && "
    console.say(f"\nNext: {where}kaigen render, look at rendered/, and commit it all.")
