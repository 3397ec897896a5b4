"""`kaigen init`: a new GitOps repository."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from kaigen.cli.console import Console
from kaigen.scaffold.repository import start_repository


@click.command("init")
@click.argument("folder", metavar="[DIR]", default=".")
@click.option("--profile", default="generic", show_default=True, help="Cluster profile.")
@click.option("--namespace", default="ml", show_default=True, help="Namespace of the apps.")
@click.pass_obj
def command(console: Console, folder: str, profile: str, namespace: str) -> None:
    """Create a GitOps repository.

    Writes kaigen.yaml, an example in specs/, schemas and editor settings, a CI workflow and pre-commit hooks to DIR
    (default: the working folder). If one of these files exists, nothing is written.
    """
    root = Path(folder)
    for path in start_repository(root, profile=profile, namespace=namespace):
        console.say(f"wrote {root / path}")
    where = "" if root.resolve() == Path.cwd() else f"cd {shlex.quote(folder)} && "
    console.say(f"\nNext: {where}kaigen render; then review rendered/ and commit everything.")
