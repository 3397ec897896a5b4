"""`kaigen upgrade`: the files of a repository, brought up to the installed version."""

from __future__ import annotations

import click

from kaigen import __version__
from kaigen.cli.console import Console
from kaigen.cli.options import read_config, require_repository
from kaigen.scaffold.changes import write_changes
from kaigen.scaffold.repository import plan_upgrade
from kaigen.scaffold.templates import CONFIG


@click.command("upgrade")
@click.option("--dry-run", is_flag=True, help="Print the changes; write nothing.")
@click.option("--no-images", is_flag=True, help="Do not change the images that kaigen.yaml pins.")
@click.pass_obj
def command(console: Console, dry_run: bool, no_images: bool) -> None:
    """Update a repository to the installed version of kaigen.

    Updates the schemas for editors, the version of hooks and pipelines, the pinned images in kaigen.yaml, and adds
    missing lines to .gitignore and .gitattributes. Prints the changes as a diff before it writes them; of the
    schemas, only with -v. Keeps commits, digests and newer versions.
    """
    config = read_config()
    require_repository(config)
    changes = [change for change in plan_upgrade(config.root, images=not no_images) if change.action != "keep"]
    for change in changes:
        if change.path.suffix == ".json" and console.verbosity < 1:
            continue
        for line in change.diff():
            console.out(line)
    if not dry_run:
        write_changes(changes)
    for change in changes:
        console.say(f"{'would update' if dry_run else 'updated'} {change.path.as_posix()}")
    if not changes:
        console.say(f"the repository is up to date with kaigen {__version__}")
    elif any(change.path == config.root / CONFIG for change in changes):
        console.say("\nThe pinned images changed: run `kaigen diff` to see which Jobs run again.")
