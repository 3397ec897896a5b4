"""`kaigen kinds`: what can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kaigen.cli.console import Console, table

if TYPE_CHECKING:
    from kaigen.kinds.registry import KindEntry


def find_entry(name: str) -> KindEntry:
    """The kind of a name as `kaigen kinds` lists it, whatever its case; `Config` is kaigen.yaml's.

    Raises:
        UsageError: when there is none.
    """
    from kaigen.config_file import CONFIG_ENTRY
    from kaigen.kinds.registry import KINDS
    from kaigen.load.suggest import did_you_mean

    entries = {entry.key: entry for entry in (*KINDS, CONFIG_ENTRY)}
    for key, entry in entries.items():
        if key.lower() == name.lower():
            return entry
    hint = did_you_mean(name, entries) or "known: " + ", ".join(entries)
    raise click.UsageError(f"no kind {name}; {hint}")


@click.command("kinds")
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", help="How they are listed."
)
@click.pass_obj
def command(console: Console, output: str) -> None:
    """List the kinds and dialects that kaigen reads.

    Its own kinds, and those of the systems whose resources it takes unchanged.
    """
    from kaigen.kinds.registry import KINDS

    if output == "json":
        import json

        described = [
            {"name": entry.key, "apiVersion": entry.api_version, "kind": entry.kind, "summary": entry.summary}
            for entry in KINDS
        ]
        console.out(json.dumps(described, indent=2))
        return
    rows = [(entry.key, entry.api_version, entry.kind, entry.summary) for entry in KINDS]
    for line in table([("NAME", "APIVERSION", "KIND", "WHAT IT IS"), *rows]):
        console.out(line)
