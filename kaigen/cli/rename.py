"""`kaigen rename`: another name for an app, in all files of a repository."""

from __future__ import annotations

import click

from kaigen.cli.console import Console
from kaigen.cli.options import read_configs, require_repository
from kaigen.scaffold.changes import write_changes
from kaigen.scaffold.rename import plan_rename

_NEXT = {
    "add": "run `kaigen render`, merge it, wait until `kaigen status` shows {new} as ready, then run "
    "`kaigen rename topology {old} {new} --switch`",
    "switch": "run `kaigen diff`, and merge it only when {new} is ready; remove the Alias when no client uses {old}",
    "move": "run `kaigen diff`: it shows what is created and deleted under the new name",
}


@click.command("rename")
@click.argument("kind", metavar="KIND")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--switch", is_flag=True, help="The second step of a Topology: NEW answers in place of OLD.")
@click.option("--dry-run", is_flag=True, help="Print the changes; write nothing.")
@click.pass_obj
def command(console: Console, kind: str, old: str, new: str, switch: bool, dry_run: bool) -> None:
    """Give an app another name.

    Changes the spec, the specs that name it, overrides, pins and kaigen.yaml, with their comments, and prints the
    changes as a diff. OLD is NAME or NAMESPACE/NAME; NEW must not exist.

    A Topology gets its other name in two steps, so that no request fails. The first one adds the Topology NEW, without
    the route of OLD. When its pods are ready, the second one, with --switch, makes OLD an Alias that leads to them, and
    specs name NEW.
    """
    configs = read_configs()
    require_repository(configs[0])
    renamed = plan_rename(configs, kind, old, new, switch=switch)
    for change in renamed.changes:
        for line in change.diff():
            console.out(line)
    if not dry_run:
        write_changes(renamed.changes)
    for change in renamed.changes:
        words = ("would add", "would change") if dry_run else ("added", "changed")
        console.say(f"{words[change.action == 'change']} {change.path.as_posix()}")
    for note in renamed.notes:
        console.say(f"by hand: {note}")
    console.say(_NEXT[renamed.step].format(old=old, new=new))
