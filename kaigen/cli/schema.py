"""`kaigen schema`: JSON Schemas for editors and other tools."""

from __future__ import annotations

import json

import click

from kaigen.cli.console import Console
from kaigen.cli.kinds import added_kinds, find_entry, named_kinds
from kaigen.dialects.registry import own_kinds
from kaigen.kinds.schema import combined_schema, json_schema


@click.command("schema")
@click.argument("kind", required=False)
@click.pass_obj
def command(console: Console, kind: str | None) -> None:
    """Print the JSON Schema of a kind.

    Without KIND, prints one schema for every document that kaigen reads.
    """
    if kind is None:
        schema = combined_schema((*own_kinds(), *added_kinds(console)), embedded=True)
    else:
        schema = json_schema(find_entry(kind, named_kinds(console)))
    console.out(json.dumps(schema, indent=2, ensure_ascii=False))
