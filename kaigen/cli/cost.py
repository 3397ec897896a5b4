"""`kaigen cost`: what the GPUs of an environment cost."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kaigen.cli.console import Console, table
from kaigen.cli.options import environment_option, read_configs, require_repository
from kaigen.config.settings import Config
from kaigen.cost.collect import Costs, collect
from kaigen.cost.listing import carbon_line, cost_rows, idle_lines, render_json, tenant_rows
from kaigen.environments.combined import for_each
from kaigen.pipeline.app_names import check_names
from kaigen.pipeline.run import Run


@click.command("cost")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@environment_option("all")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(console: Console, apps: tuple[str, ...], environment: str, output: str) -> None:
    """Show what the GPUs of apps cost.

    Each pod costs its share of the GPUs of its node. Prices are those of the catalog of the repository, or list
    prices on demand less the discounts of the catalog. A range is from the autoscaler's minimum to its maximum. With
    APP, `NAME` or `NAMESPACE/NAME`, shows these apps.

    Pods without GPUs, volumes and traffic are not counted.
    """
    configs = read_configs(environment)
    require_repository(configs[0])
    found = for_each(configs, lambda config: _costs(config, apps))
    if output == "json":
        console.write(render_json(found))
        return
    for each in found:
        _print(console, each, several=len(found) > 1)


def _costs(config: Config, apps: Sequence[str]) -> Costs:
    compilation = Run.load((), config, use_cache=False).compilation()
    check_names(apps, [(item.app.namespace, item.app.name) for item in compilation.apps])
    return collect(compilation, config, apps)


def _print(console: Console, found: Costs, *, several: bool) -> None:
    if several:
        console.out(f"environment {found.environment}")
        console.out()
    if not found.items:
        console.out("no pod requests GPUs")
    else:
        tables = [cost_rows(found)]
        if any(item.tenant for item in found.items):
            tables.append(tenant_rows(found))
        for number, rows in enumerate(tables):
            if number:
                console.out()
            for line in table(list(rows)):
                console.out(line)
        for line in [*filter(None, [carbon_line(found)]), *idle_lines(found)]:
            console.out()
            console.out(line)
    if several:
        console.out()
