"""`kaigen prune`: removes specs whose time is over."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from kaigen.cli import render
from kaigen.cli.console import Console, table
from kaigen.cli.options import read_config, require_repository
from kaigen.scaffold.expired import find_expired, restore, write_pruned


@click.command("prune")
@click.option("--expired", is_flag=True, required=True, help="Remove the specs that have expired.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed; write nothing.")
@click.pass_context
def command(context: click.Context, expired: bool, dry_run: bool) -> None:
    """Remove specs that have expired, and render.

    A spec expires at the time of its annotation `kaigen.dev/expires-at`. Its document is removed from its file, and its
    rendered files with the next render, which runs at once. A file without another document is deleted. If the render
    fails, for example because another spec uses the one that has expired, nothing is changed.

    Run it from a schedule, and commit the change.
    """
    console: Console = context.obj
    config = read_config()
    require_repository(config)
    files = find_expired(config, datetime.now(UTC))
    if not files:
        console.say("nothing has expired")
        return
    rows = [item.row() for file in files for item in file.specs]
    for line in table([("SPEC", "EXPIRED", "FILE"), *rows]):
        console.out(line)
    if dry_run:
        return
    write_pruned(files)
    try:
        context.invoke(render.command)
    except BaseException:
        restore(files)
        raise
    console.say("review and commit the change")
