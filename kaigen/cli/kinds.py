"""`kaigen kinds`: what can be written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from kaigen.cli.console import Console, table
from kaigen.cli.options import read_config
from kaigen.config.catalog import CATALOG_ENTRY
from kaigen.config.file import config_entry
from kaigen.config.overrides import OVERRIDES_ENTRY
from kaigen.config.pins import PINS_ENTRY
from kaigen.config.settings import FILE_NAME
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.packages import package_dialects
from kaigen.dialects.registry import own_kinds
from kaigen.extend.definition import DEFINITION_ENTRY
from kaigen.extend.find import all_kinds
from kaigen.kinds.entry import entries_by_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kaigen.kinds.entry import KindEntry


def added_kinds(console: Console) -> tuple[KindEntry, ...]:
    """Return the kinds of the repository and of installed packages; print invalid ones as warnings."""
    try:
        found = all_kinds(read_config())
    except InputError as error:
        console.report([item.as_warning() for item in error.diagnostics])
        return ()
    if found.diagnostics:
        console.report([item.as_warning() for item in found.diagnostics])
    return found.entries


def named_kinds(console: Console) -> dict[str, KindEntry]:
    """Every kind by each of its names; those of kaigen.yaml, of pins and of kind.yaml among them."""
    config = config_entry(package_dialects().settings)
    own = entries_by_name((*own_kinds(), config, CATALOG_ENTRY, PINS_ENTRY, OVERRIDES_ENTRY, DEFINITION_ENTRY))
    own |= {FILE_NAME: config, "kind.yaml": DEFINITION_ENTRY}
    added = entries_by_name(added_kinds(console))
    return {**own, **{name: entry for name, entry in added.items() if name not in own}}


def find_entry(name: str, kinds: Mapping[str, KindEntry]) -> KindEntry:
    """The kind of a name as `kaigen kinds` lists it, whatever its case.

    Raises:
        UsageError: when there is none.
    """
    for key, entry in kinds.items():
        if key.lower() == name.lower():
            return entry
    hint = did_you_mean(name, kinds) or "`kaigen kinds` lists them"
    raise click.UsageError(f"no kind {name}; {hint}")


@click.command("kinds")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(console: Console, output: str) -> None:
    """List the kinds and dialects that kaigen reads.

    Lists kaigen's own kinds, those of other systems that it reads unchanged, and those that the repository and
    installed packages add.
    """
    kinds = (*own_kinds(), *added_kinds(console))
    if output == "json":
        described = [
            {"name": entry.key, "apiVersion": entry.api_version, "kind": entry.kind, "summary": entry.summary}
            for entry in kinds
        ]
        console.out(json.dumps(described, indent=2))
        return
    rows = [(entry.key, entry.api_version, entry.kind, entry.summary) for entry in kinds]
    for line in table([("NAME", "APIVERSION", "KIND", "DESCRIPTION"), *rows]):
        console.out(line)
