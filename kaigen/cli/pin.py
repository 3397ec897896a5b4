"""`kaigen pin`: commits and digests in place of branches and tags."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from kaigen.cli.console import Console, table
from kaigen.cli.options import read_config, require_repository
from kaigen.config.settings import Config
from kaigen.hub.client import Hub
from kaigen.lock.pins import Name, Pins, moving_names, plan_pins
from kaigen.lock.registries import Registries
from kaigen.scaffold.changes import write_changes


@click.command("pin")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@click.option("--update", is_flag=True, help="Also resolve the names of pinned values again.")
@click.option("--check", is_flag=True, help="List what is not pinned; exit with 1 if there is any. Asks no server.")
@click.option("--dry-run", is_flag=True, help="Print what would change; write nothing.")
@click.option("--plain-http", is_flag=True, help="Connect to remote registries without TLS.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(
    console: Console, apps: tuple[str, ...], update: bool, check: bool, dry_run: bool, plain_http: bool, output: str
) -> None:
    """Pin branches and tags to commits and digests.

    Asks the Hugging Face Hub, Git servers and registries what the branches and tags in the specs of each APP (default:
    all) stand for, and writes the commit or digest into the spec. The tag stays in the image, and the branch as a
    comment; other comments and the formatting do not change. Review and commit the change. Only this command asks.

    Credentials are those of Git and `docker login`, and HF_TOKEN or `hf auth login` for the Hub.
    """
    if check and (update or dry_run):
        raise click.UsageError("--check cannot be combined with --update or --dry-run")
    config = read_config()
    require_repository(config)
    names = moving_names(config, apps, update=update)
    if check:
        _check(console, [name for listed in names.values() for name in listed], output)
        return
    pins = plan_pins(names, Hub(_hub(config)), Registries(plain_http=plain_http))
    if not dry_run:
        write_changes(pins.changes)
    if output == "json":
        console.out(json.dumps(_data(pins, written=not dry_run), indent=2, ensure_ascii=False))
    else:
        _text(console, pins, dry_run=dry_run)


def _hub(config: Config) -> str:
    return (config.network and config.network.hub_endpoint) or ""


def _check(console: Console, names: Sequence[Name], output: str) -> None:
    if output == "json":
        data = [{"app": name.app, "field": name.field, "value": name.moving, "place": str(name.mark)} for name in names]
        console.out(json.dumps(data, indent=2, ensure_ascii=False))
    elif names:
        rows = [(name.app, name.field, name.moving, _place(name)) for name in names]
        for line in table([("APP", "FIELD", "VALUE", "SPEC"), *rows]):
            console.out(line)
    if names:
        console.say(f"{len(names)} not pinned; `kaigen pin` resolves {'it' if len(names) == 1 else 'them'}")
        raise click.exceptions.Exit(1)
    console.say("everything is pinned")


def _text(console: Console, pins: Pins, *, dry_run: bool) -> None:
    if not pins.pins:
        console.say("nothing to pin")
        return
    if dry_run:
        for change in pins.changes:
            for line in change.diff():
                console.out(line.rstrip("\n"))
        return
    rows = [(pin.name.app, pin.name.field, f"{pin.old} → {pin.value}", _place(pin.name)) for pin in pins.pins]
    for line in table([("APP", "FIELD", "CHANGE", "SPEC"), *rows]):
        console.out(line)
    console.say("review and commit the change")


def _data(pins: Pins, *, written: bool) -> dict[str, object]:
    return {
        "pins": [
            {
                "app": pin.name.app,
                "field": pin.name.field,
                "old": pin.name.value,
                "new": pin.value,
                "name": pin.name.moving,
                "place": str(pin.name.mark),
            }
            for pin in pins.pins
        ],
        "files": [change.path.as_posix() for change in pins.changes],
        "written": written and bool(pins.changes),
    }


def _place(name: Name) -> str:
    return f"{name.mark.file}:{name.mark.line}"
