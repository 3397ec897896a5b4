"""`kaigen upgrade`: the files of a repository, brought up to the installed version."""

from __future__ import annotations

import click

from kaigen import __version__
from kaigen.cli.console import Console
from kaigen.cli.options import read_configs, require_repository
from kaigen.scaffold.changes import write_changes
from kaigen.scaffold.image_settings import images_to_pin
from kaigen.scaffold.repository import plan_upgrade
from kaigen.scaffold.spellings import respelled_files
from kaigen.scaffold.templates import CONFIG


@click.command("upgrade")
@click.option("--dry-run", is_flag=True, help="Print the changes; write nothing.")
@click.option(
    "--images/--no-images",
    default=False,
    help="Change the pinned images, too: pods restart, and finished Jobs start again. Default: keep them.",
)
@click.pass_obj
def command(console: Console, dry_run: bool, images: bool) -> None:
    """Update a repository to the installed version of kaigen.

    Updates the schemas for editors and the version of hooks and pipelines, adds missing lines to .gitignore and
    .gitattributes, adds images that apps use to those that kaigen.yaml pins, with the version that the rendered tree
    has, and rewrites fields of specs and overrides that have an old spelling. Prints the changes as a diff before it
    writes them; of the schemas, only with -v. Keeps commits, digests, comments and newer versions.
    """
    configs = read_configs()
    config = configs[0]
    require_repository(config)
    pins = images_to_pin(configs)
    planned = {change.path: change for change in plan_upgrade(config.root, pins, images=images)}
    planned |= {change.path: change for change in respelled_files(configs, planned.values())}
    notes = [change for change in planned.values() if change.action == "keep" and change.note]
    changes = [change for _, change in sorted(planned.items()) if change.action != "keep"]
    for change in changes:
        if change.path.suffix == ".json" and console.verbosity < 1:
            continue
        for line in change.diff():
            console.out(line)
    if not dry_run:
        write_changes(changes)
    for change in changes:
        console.say(f"{'would update' if dry_run else 'updated'} {change.path.as_posix()}")
    for change in notes:
        console.say(f"kept {change.path.as_posix()}: {change.note}")
    if not changes:
        console.say(f"the repository is up to date with kaigen {__version__}")
    elif images and any(change.path == config.root / CONFIG for change in changes):
        console.say("\nThe pinned images changed: run `kaigen diff` to see what restarts, and which Jobs run again.")
