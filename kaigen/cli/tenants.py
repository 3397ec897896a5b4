"""`kaigen tenants`: teams of kaigen.yaml, and what their specs need."""

from __future__ import annotations

import os
import posixpath

import click

from kaigen.cli.console import Console
from kaigen.cli.options import environment_option, read_configs, require_repository
from kaigen.config.tenant_settings import tenant_of_file
from kaigen.pipeline.sources import relative_path
from kaigen.pipeline.suggested_tenant import suggest_tenant
from kaigen.yaml.dump import dump


@click.group("tenants")
def command() -> None:
    """Print what tenants need."""


@command.command("suggest")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.option("--name", metavar="NAME", default="", help="Name of the tenant. Default: that of the folder.")
@environment_option("all")
@click.pass_obj
def suggest(console: Console, /, folder: str, name: str, environment: str) -> None:
    """Print the tenant that the specs in FOLDER need, for kaigen.yaml.

    Lists the namespaces of the specs and everything that they reach outside these, in all environments. Review it:
    what is in the list is what the tenant may have from now on. Exits with 1 if the specs need something that cannot
    be granted.
    """
    configs = read_configs(environment)
    require_repository(configs[0])
    place = posixpath.normpath(relative_path(os.path.normpath(folder), configs[0].root) or ".")
    known = tenant_of_file(place, configs[0].tenants)
    name = name or (known.name if known is not None else posixpath.basename(place))
    found = suggest_tenant(name, place, configs)
    environments = {each: {"tenants": {name: fields}} for each, fields in found.environments.items()}
    console.write(dump({"tenants": {name: found.block}, **({"environments": environments} if environments else {})}))
    for old, new in found.moved:
        console.say(
            f"the specs name no namespace, and other folders or tenants use `{old}`, so these move to `{new}`, which "
            "makes new objects; to keep their volumes, see docs/operate/change.md"
        )
    for message in found.denied:
        console.say(f"not in the list: {message}")
    if found.denied:
        raise click.exceptions.Exit(1)
