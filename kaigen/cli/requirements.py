"""`kaigen requirements`: what a cluster must have for an environment."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kaigen.cli.console import Console, table
from kaigen.cli.options import address_options, environment_option, read_configs, require_repository
from kaigen.cluster.connect import connect
from kaigen.config.settings import Config
from kaigen.environments.combined import for_each
from kaigen.pipeline.app_names import check_names
from kaigen.pipeline.run import Run
from kaigen.requirements.cluster import findings_of
from kaigen.requirements.collect import collect
from kaigen.requirements.listing import (
    Findings,
    render_json,
    render_yaml,
    requirement_rows,
    requirements_data,
    total_rows,
)
from kaigen.requirements.model import Requirements


@click.command("requirements")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@environment_option("all")
@click.option("--check", is_flag=True, help="Check a cluster; exit with 1 if it lacks something.")
@address_options
@click.option("--output", "-o", type=click.Choice(["text", "json", "yaml"]), default="text", help="Output format.")
@click.pass_obj
def command(
    console: Console, apps: tuple[str, ...], environment: str, check: bool, context: str, kubeconfig: str, output: str
) -> None:
    """List what a cluster must have.

    Lists the APIs, classes, drivers, resources of nodes, namespaces, Secrets and other objects that the apps of an
    environment need and the repository does not create, each with the line that needs it, and the sum of what the
    apps request. With APP, `NAME` or `NAMESPACE/NAME`, lists what these apps need.

    --check asks the cluster of a context. It writes nothing, and reads no values of Secrets. Needs `pip install
    'kaigen[cluster]'`.
    """
    if (context or kubeconfig) and not check:
        raise click.UsageError(f"{'--context' if context else '--kubeconfig'} requires --check")
    configs = read_configs(environment)
    require_repository(configs[0])
    if check and len(configs) > 1:
        names = ", ".join(config.environment for config in configs)
        raise click.UsageError(f"--check needs one environment; select it with --env: {names}")
    found = for_each(configs, lambda config: _requirements(config, apps))
    cluster = connect(context, kubeconfig) if check else None
    findings = [findings_of(item, cluster) if cluster else None for item in found]
    if output == "text":
        for item, result in zip(found, findings, strict=True):
            _print(console, item, result, several=len(found) > 1)
    else:
        data = [requirements_data(item, result) for item, result in zip(found, findings, strict=True)]
        console.write(render_json(data) if output == "json" else render_yaml(data))
    missing = sum(each.status == "missing" for result in findings if result for each in result.values())
    if missing:
        console.say(f"the cluster lacks {missing} of {len(findings[0] or ())} requirements")
        raise click.exceptions.Exit(1)


def _requirements(config: Config, apps: Sequence[str]) -> Requirements:
    compilation = Run.load((), config, use_cache=False).compilation()
    check_names(apps, [(item.app.namespace, item.app.name) for item in compilation.apps])
    return collect(compilation, config, apps)


def _print(console: Console, found: Requirements, findings: Findings | None, *, several: bool) -> None:
    if several:
        console.out(f"environment {found.environment}")
        console.out()
    for line in table(list(requirement_rows(found, findings))):
        console.out(line)
    if found.totals:
        console.out()
        for line in table(list(total_rows(found))):
            console.out(line)
    if several:
        console.out()
