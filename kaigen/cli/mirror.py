"""`kaigen mirror`: what to copy into a closed network."""

from __future__ import annotations

import click

from kaigen.cli.console import Console
from kaigen.cli.options import environment_option, read_configs, require_repository
from kaigen.environments.combined import for_each
from kaigen.mirror.collect import count_unpinned, transfer_list
from kaigen.mirror.model import render_json, render_text, render_yaml

_FORMS = {"text": render_text, "json": render_json, "yaml": render_yaml}


@click.command("mirror")
@click.option("--list", "listed", is_flag=True, required=True, help="List what to copy.")
@environment_option("all")
@click.option("--output", "-o", type=click.Choice(list(_FORMS)), default="text", help="Output format.")
@click.pass_obj
def command(console: Console, /, listed: bool, environment: str, output: str) -> None:
    """List the images, files of models and charts that an environment needs.

    Each has its own name and the name after mirroring, by `registry` and `network` in kaigen.yaml, and digest and size
    as far as the repository knows them. No server is asked. The text has a line for each item and tabs between its
    fields, for scripts; docs/networks.md has examples.
    """
    assert listed
    configs = read_configs(environment)
    require_repository(configs[0])
    found = for_each(configs, transfer_list)
    console.write(_FORMS[output](found))
    moving = count_unpinned(found)
    if moving:
        console.say(f"{moving} have no digest or commit, so what is copied may change")
