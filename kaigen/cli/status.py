"""`kaigen status`: the state of the apps of a repository in a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import click

from kaigen.cli.console import Console, table
from kaigen.cli.options import address_options, environment_option, read_configs, require_repository
from kaigen.cluster.connect import connect
from kaigen.config.settings import Config
from kaigen.diagnostics.codes import page_url
from kaigen.environments.combined import for_each
from kaigen.pipeline.app_names import check_names
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import Run
from kaigen.status.app_status import AppStatus, render_json, status_rows
from kaigen.status.collect import collect


@click.command("status")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@environment_option("all")
@click.option("--watch", "-w", is_flag=True, help="Repeat until every app is ready.")
@click.option("--interval", type=click.FloatRange(min=0.2), default=5.0, show_default=True, help="Seconds for --watch.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="End --watch after this time.")
@address_options
@click.option("--output", "-o", type=click.Choice(["text", "wide", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(
    console: Console,
    apps: tuple[str, ...],
    environment: str,
    watch: bool,
    interval: float,
    timeout: float | None,
    context: str,
    kubeconfig: str,
    output: str,
) -> None:
    """Show the state of apps in a cluster.

    Compares the objects that `kaigen render` makes with those in the cluster, and shows for each app whether they are
    ready, its run, the state of its Application, Kustomization or HelmRelease, what its containers report, and why it
    is not ready. With APP, `NAME` or `NAMESPACE/NAME`, shows these apps.

    Exits with 1 if an app is not ready or not synced. Writes nothing, and reads no values of Secrets. Needs
    `pip install 'kaigen[cluster]'`.
    """
    if timeout is not None and not watch:
        raise click.UsageError("--timeout requires --watch")
    configs = read_configs(environment)
    require_repository(configs[0])
    compiled = for_each(configs, lambda config: (config, _compile(config)))
    check_names(apps, [(item.app.namespace, item.app.name) for _, found in compiled for item in found.apps])
    cluster = connect(context, kubeconfig)

    def read() -> list[AppStatus]:
        return [status for config, found in compiled for status in collect(found, config, cluster, apps)]

    found = _watch(read, interval, timeout, lambda each: _print(console, each, output)) if watch else read()
    if not watch:
        _print(console, found, output)
    waiting = sum(not status.ready for status in found)
    if waiting:
        console.say(f"{waiting} of {len(found)} apps are not ready; {page_url('operate/troubleshoot')} lists causes")
        raise click.exceptions.Exit(1)


def _compile(config: Config) -> Compilation:
    return Run.load((), config, use_cache=False).compilation()


def _watch(
    read: Callable[[], list[AppStatus]],
    interval: float,
    timeout: float | None,
    show: Callable[[Sequence[AppStatus]], None],
) -> list[AppStatus]:
    """Show the state whenever it changes, until every app is ready or the time is over; return the last one."""
    end = None if timeout is None else time.monotonic() + timeout
    before: list[AppStatus] | None = None
    while True:
        found = read()
        if found != before:
            show(found)
        if all(status.ready for status in found) or (end is not None and time.monotonic() + interval > end):
            return found
        before = found
        time.sleep(interval)


def _print(console: Console, found: Sequence[AppStatus], output: str) -> None:
    if output == "json":
        console.write(render_json(found))
        return
    for line in table(list(status_rows(found, wide=output == "wide"))):
        console.out(line)
